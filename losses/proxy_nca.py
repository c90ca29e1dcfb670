"""Proxy-NCA in three forms: ProxyNCA++, Proxy-NCA, and a Proxy-Anchor form."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from .base import ProxyLoss, checked_labels, log_one_plus_sum, of_samples, require_one_of

ProxyNCAVariant = Literal["prob", "classic", "anchor_form"]
ProxyNCAStart = Literal["eighth", "normal", "kaiming"]

# Starting values of the proxies; the variance of `kaiming` on (C, d) with fan-out is 2 / C.
_INITS: Mapping[str, Callable[[Tensor], Any]] = MappingProxyType(
    {
        "eighth": partial(nn.init.normal_, std=0.125),
        "normal": nn.init.normal_,
        "kaiming": partial(nn.init.kaiming_normal_, mode="fan_out"),
    }
)

# The settings of each form with their defaults. A setting of another form is refused, not ignored.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "prob": {"softmax_scale": 9.0},
        "classic": {"softmax_scale": 9.0},
        "anchor_form": {"alpha": 32.0, "margin": 0.1},
    }
)


class ProxyNCALoss(ProxyLoss):
    """Softmax over one proxy per class, in the form of ProxyNCA++, of Proxy-NCA, or of Proxy-Anchor.

    With s_ic the cosine between sample i and proxy c, and logits `l_ic = 2 softmax_scale s_ic` (which is
    `-softmax_scale |x_i - p_c|^2` up to a constant), the loss is the mean over samples of::

        prob         -log( e^{l_iy} / sum_c e^{l_ic} )                           ProxyNCA++
        classic      -log( e^{l_iy} / sum_{c != y} e^{l_ic} )                    Proxy-NCA; may be negative
        anchor_form  log(1 + e^{-alpha (s_iy - margin)}) + log(1 + sum_{c != y} e^{alpha (s_ic + margin)})

    Embeddings (B, d) may have any norm, labels (B,) are in 0..C-1. `indices_tuple` weights the samples. The loss is
    computed in log space, so no sample is lost to underflow. pytorch-metric-learning's class equals `prob` except for
    underflow.

    The Proxy-NCA in Proxy-ISA's paper and code is `classic` on 12 times the cosine: `softmax_scale` 6 with proxies from
    `kaiming`.

    Args:
        num_classes: C.
        embedding_size: d.
        variant: the form: `prob`, `classic` or `anchor_form`; default `prob`.
        softmax_scale: for `prob` and `classic`, inverse temperature of the squared distances; default 9.
        alpha: for `anchor_form`, sharpness; default 32.
        margin: for `anchor_form`, in cosine units; default 0.1.
        proxy_init: starting values of the proxies. `eighth`: N(0, 1) / 8, as in the code of ProxyNCA++, of the port of
            Proxy-NCA and of NIR. `normal`: N(0, 1), as in pytorch-metric-learning and so in MLRC. `kaiming`: variance
            2/C, as in Proxy-ISA's code. Default `eighth`.
        **kwargs: those of pytorch-metric-learning's base classes.

    Raises:
        ValueError: for a setting of another form, for C < 2 if the form needs another class, for `proxy_init` together
            with `weight_init_func`, and for every batch that `checked_labels` refuses.

    Source: Roth et al., Non-isotropy Regularization for Proxy-based Deep Metric Learning, CVPR 2022, Eqs. 1 (classic),
    4 (prob) and 6 (anchor_form); Teh et al., ECCV 2020, for ProxyNCA++; Movshovitz-Attias et al., ICCV 2017, for
    Proxy-NCA.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        variant: ProxyNCAVariant = "prob",
        *,
        softmax_scale: float | None = None,
        alpha: float | None = None,
        margin: float | None = None,
        proxy_init: ProxyNCAStart | None = None,
        **kwargs: Any,
    ) -> None:
        if proxy_init is not None:
            kwargs["weight_init_func"] = _init_func(proxy_init, kwargs.get("weight_init_func"))
        super().__init__(num_classes, embedding_size, **kwargs)
        given = {"softmax_scale": softmax_scale, "alpha": alpha, "margin": margin}
        self.settings = _settings(variant, {name: value for name, value in given.items() if value is not None})
        if num_classes < 2 and variant == "classic":
            raise ValueError(f"Proxy-NCA in its form {variant!r} needs two classes, got {num_classes}")
        self.variant = variant

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: sub-loss `loss` (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        losses = self._sample_losses(self.get_logits(embeddings), labels)
        return {"loss": of_samples(losses, labels, indices_tuple)}

    def _sample_losses(self, cosine: Tensor, labels: Tensor) -> Tensor:
        if self.variant == "anchor_form":
            return self._anchor_form(cosine, labels)
        logits: Tensor = 2 * self.settings["softmax_scale"] * cosine
        if self.variant == "classic":
            own = labels.unsqueeze(1)
            others: Tensor = logits.scatter(1, own, -math.inf).logsumexp(dim=1)
            return others - logits.gather(1, own).squeeze(1)
        return functional.cross_entropy(logits, labels, reduction="none")

    def _anchor_form(self, cosine: Tensor, labels: Tensor) -> Tensor:
        alpha, margin = self.settings["alpha"], self.settings["margin"]
        positive = -alpha * (cosine.gather(1, labels.unsqueeze(1)).squeeze(1) - margin)
        others = ~functional.one_hot(labels, self.num_classes).bool()
        repulsion = log_one_plus_sum(alpha * (cosine + margin), others, dim=1)
        # torch's softplus is the identity above 20.
        return torch.logaddexp(positive, torch.zeros_like(positive)) + repulsion

    def default_weight_init(self, weight: Tensor) -> None:
        """Normal with standard deviation 1/8, as in the code of ProxyNCA++, of the port of Proxy-NCA and of NIR."""
        _INITS["eighth"](weight)


def _init_func(proxy_init: str, other: Any) -> Callable[[Tensor], Any]:
    if other is not None:
        raise ValueError("give proxy_init or weight_init_func, not both")
    require_one_of(ProxyNCAStart, "proxy_init", proxy_init)
    return _INITS[proxy_init]


def _settings(variant: str, given: Mapping[str, Any]) -> dict[str, Any]:
    require_one_of(ProxyNCAVariant, "variant", variant)
    defaults = _DEFAULTS[variant]
    foreign = sorted(given.keys() - defaults.keys())
    if foreign:
        raise ValueError(f"Proxy-NCA in its form {variant!r} takes {', '.join(defaults)}, not {', '.join(foreign)}")
    return {**defaults, **given}
