"""Proxy-NCA in four forms: own proxy in the denominator or not, labels smoothed, or Proxy-Anchor's sum of two terms."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses.base_metric_loss_function import BaseMetricLossFunction
from pytorch_metric_learning.losses.mixins import WeightRegularizerMixin
from pytorch_metric_learning.utils import common_functions as c_f
from pytorch_metric_learning.utils import loss_and_miner_utils as lmu
from torch import Tensor
from torch.nn import functional

from losses.checks import checked_labels, require_similarity
from losses.plugin import TrainingPlugin
from losses.precision import FullPrecisionForward, at_least_float32

Variant = Literal["prob", "classic", "port", "anchor_form"]

# What each form takes, and its default: a setting of another form is refused rather than ignored.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "prob": {"scale": 3.0},
        "classic": {"scale": 3.0},
        "port": {"smoothing_const": 0.1, "scaling_x": 1.0, "scaling_p": 3.0},
        "anchor_form": {"alpha": 32.0, "margin": 0.1, "positive_enumeration": "proxies"},
    }
)


def classic_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """`-log(e^{l_y} / sum_{c != y} e^{l_c})` (B,) of logits (B, C), C >= 2: the own proxy is not in the denominator."""
    own = functional.one_hot(labels, logits.shape[1]).bool()
    return logits.masked_fill(own, -math.inf).logsumexp(dim=1) - logits[own]


def smoothed_losses(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Cross-entropy (B,) of logits (B, C) with targets `1 - smoothing`, and `smoothing / (C - 1)` off the own class."""
    if smoothing == 0:
        return functional.cross_entropy(logits, labels, reduction="none")
    targets = torch.full_like(logits, smoothing / (logits.shape[1] - 1))
    targets.scatter_(1, labels.unsqueeze(1), 1 - smoothing)
    return functional.cross_entropy(logits, targets, reduction="none")


def anchor_form_losses(positive: Tensor, negative: Tensor, labels: Tensor) -> Tensor:
    """`log(1 + e^{positive_i}) + log(1 + sum_{c != y_i} e^{negative_ic})` (B,) of exponents (B,) and (B, C)."""
    others = ~functional.one_hot(labels, negative.shape[1]).bool()
    repulsion: Tensor = lmu.logsumexp(negative, keep_mask=others, add_one=True, dim=1)
    attraction = torch.logaddexp(positive, torch.zeros_like(positive))  # softplus is cut off at 20
    return attraction + repulsion.squeeze(1)


class ProxyNCALoss(FullPrecisionForward, TrainingPlugin, WeightRegularizerMixin, BaseMetricLossFunction):
    """Softmax over one proxy per class, in the form of ProxyNCA++, of Proxy-NCA, of its port, or of Proxy-Anchor.

    With s_ic the cosine between sample i and proxy c, and logits `l_ic = 2 scale^2 s_ic` (which is
    `-scale^2 |x_i - p_c|^2` up to a constant), the loss is the mean over samples of::

        prob         -log( e^{l_iy} / sum_c e^{l_ic} )                           ProxyNCA++
        classic      -log( e^{l_iy} / sum_{c != y} e^{l_ic} )                    Proxy-NCA; may be negative
        port         cross-entropy of l_ic = 2 scaling_x scaling_p s_ic with smoothed labels
        anchor_form  log(1 + n_i e^{-alpha (s_iy - margin)}) + log(1 + sum_{c != y} e^{alpha (s_ic + margin)})

    Embeddings (B, d) may be raw, labels (B,) are in 0..C-1. `indices_tuple` weighs the samples. All in log space, so
    no sample is lost to underflow as in pytorch-metric-learning's class, which equals `prob` elsewhere.

    Args:
        num_classes, embedding_size: C and d.
        variant: the form, `prob`.
        scale: square root of the inverse temperature of squared distances, 3; for `prob` and `classic`.
        softmax_scale: `scale` squared, under the name pytorch-metric-learning has for it; give one of the two.
        smoothing_const: probability mass on the other classes, 0.1; for `port`, like the next two.
        scaling_x, scaling_p: lengths of embeddings and proxies, 1 and 3.
        alpha, margin: sharpness, 32, and margin in cosine units, 0.1; for `anchor_form`, like the next.
        positive_enumeration: `proxies` has n_i = 1, as printed; `batch` counts the samples of class y_i in the batch,
            as the authors' code does.

    Further keywords go to pytorch-metric-learning's base class; proxies start from N(0, 1) / 8.

    Raises ValueError for a setting of another form, for C < 2 where the form needs another class, and for every batch
    `checked_labels` refuses.

    Source: Roth et al., Non-isotropy Regularization for Proxy-based Deep Metric Learning, CVPR 2022, Eqs. 1 (classic),
    4 (prob) and 6 (anchor_form); Teh et al., ECCV 2020, for ProxyNCA++; Movshovitz-Attias et al., ICCV 2017, for
    Proxy-NCA, with its PyTorch port (port).
    """

    distance: Any
    weight_init_func: Any

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        variant: Variant = "prob",
        *,
        scale: float | None = None,
        softmax_scale: float | None = None,
        smoothing_const: float | None = None,
        scaling_x: float | None = None,
        scaling_p: float | None = None,
        alpha: float | None = None,
        margin: float | None = None,
        positive_enumeration: Literal["proxies", "batch"] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require_similarity(self.distance)
        if softmax_scale is not None:
            if scale is not None:
                raise ValueError("give scale or softmax_scale (its square), not both")
            scale = math.sqrt(softmax_scale)
        given = {
            "scale": scale,
            "smoothing_const": smoothing_const,
            "scaling_x": scaling_x,
            "scaling_p": scaling_p,
            "alpha": alpha,
            "margin": margin,
            "positive_enumeration": positive_enumeration,
        }
        self.settings = _settings(variant, {name: value for name, value in given.items() if value is not None})
        if num_classes < 2 and (variant == "classic" or self.settings.get("smoothing_const", 0) > 0):
            raise ValueError(f"Proxy-NCA in its form {variant!r} needs two classes, got {num_classes}")
        self.variant, self.num_classes, self.embedding_size = variant, num_classes, embedding_size
        self.proxies = torch.nn.Parameter(torch.empty(num_classes, embedding_size))
        self.weight_init_func(self.proxies)
        self.add_to_recordable_attributes(list_of_names=["num_classes", "variant"], is_stat=False)

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-loss `loss` (B,)."""
        c_f.ref_not_supported(embeddings, labels, ref_emb, ref_labels)
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        weights = lmu.convert_to_weights(indices_tuple, labels, dtype=embeddings.dtype)
        terms: dict[str, Any] = {
            "loss": {
                "losses": self._sample_losses(self.get_logits(embeddings), labels) * weights,
                "indices": c_f.torch_arange_from_size(embeddings),
                "reduction_type": "element",
            }
        }
        self.add_weight_regularization_to_loss_dict(terms, self.proxies)
        return terms

    def _sample_losses(self, cosine: Tensor, labels: Tensor) -> Tensor:
        settings = self.settings
        if self.variant == "classic":
            return classic_losses(2 * settings["scale"] ** 2 * cosine, labels)
        if self.variant == "anchor_form":
            return self._anchor_form(cosine, labels)
        if self.variant == "port":
            logits = 2 * settings["scaling_x"] * settings["scaling_p"] * cosine
            return smoothed_losses(logits, labels, settings["smoothing_const"])
        return smoothed_losses(2 * settings["scale"] ** 2 * cosine, labels, smoothing=0.0)

    def _anchor_form(self, cosine: Tensor, labels: Tensor) -> Tensor:
        alpha, margin = self.settings["alpha"], self.settings["margin"]
        positive = -alpha * (cosine.gather(1, labels.unsqueeze(1)).squeeze(1) - margin)
        if self.settings["positive_enumeration"] == "batch":
            positive = positive + labels.bincount(minlength=self.num_classes)[labels].to(positive.dtype).log()
        return anchor_form_losses(positive, alpha * (cosine + margin), labels)

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Cosines (B, C) between embeddings (B, d) and the proxies, without any scale."""
        embeddings = at_least_float32(embeddings)
        similarity: Tensor = self.distance(embeddings, self.proxies.to(embeddings.dtype))
        return similarity

    def get_default_distance(self) -> CosineSimilarity:
        """Cosine similarity."""
        return CosineSimilarity()

    def get_default_weight_init_func(self) -> Any:
        """Normal with standard deviation 1/8, as the authors of ProxyNCA++, its port and NIR have it."""
        return c_f.TorchInitWrapper(torch.nn.init.normal_, std=0.125)


def _settings(variant: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if variant not in _DEFAULTS:
        raise ValueError(f"variant must be one of {', '.join(_DEFAULTS)}, got {variant!r}")
    defaults = _DEFAULTS[variant]
    foreign = sorted(given.keys() - defaults.keys())
    if foreign:
        raise ValueError(f"Proxy-NCA in its form {variant!r} takes {', '.join(defaults)}, not {', '.join(foreign)}")
    settings = {**defaults, **given}
    if settings.get("positive_enumeration", "proxies") not in ("proxies", "batch"):
        raise ValueError("positive_enumeration must be 'proxies' or 'batch'")
    return settings
