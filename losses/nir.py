"""Non-isotropy regularisation: a flow keeps the samples around a proxy from collapsing into a featureless ball."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import torch
from pytorch_metric_learning.losses.base_metric_loss_function import BaseMetricLossFunction
from pytorch_metric_learning.utils import common_functions as c_f
from pytorch_metric_learning.utils import loss_and_miner_utils as lmu
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from losses.binding import Binding, gradients_are_finite
from losses.checks import checked_labels
from losses.coupling_flow import Condition, CouplingFlow
from losses.plugin import Clock, Needs, TrainingContext, TrainingPlugin
from losses.precision import FullPrecisionForward
from losses.proxy_anchor import ProxyAnchorLoss
from losses.proxy_nca import ProxyNCALoss
from losses.soft_triple import SoftTripleLoss
from losses.wrapper import PluginWrapper, merged_needs

SelfRegularization = Literal["generate", "reverse_match", "generate_and_match"]

# Blocks, linear layers and width of the flow: as printed in the paper (the layers are not; three is our choice), and as
# in the authors' code and run scripts.
_PRESETS: Mapping[str, tuple[int, int, int]] = MappingProxyType({"paper": (8, 3, 128), "code": (5, 8, 128)})

# The proxies of NIR start from N(0, 1) / 8; those of Proxy-Anchor by itself do not.
_BASES: Mapping[str, tuple[Callable[..., nn.Module], Mapping[str, Any]]] = MappingProxyType(
    {
        "proxy_anchor": (ProxyAnchorLoss, {"weight_init_func": c_f.TorchInitWrapper(nn.init.normal_, std=0.125)}),
        "proxy_nca": (ProxyNCALoss, {"variant": "anchor_form"}),
        "soft_triple": (SoftTripleLoss, {}),
    }
)


class NIRLoss(FullPrecisionForward, PluginWrapper, BaseMetricLossFunction):
    """A proxy loss plus the likelihood of the samples under a flow that is told their proxy.

    With unit embeddings x (B, d), unit proxies p (C, d) and the flow f (`CouplingFlow`)::

        nll_i = |z_i|^2 / 2 - log |det dz_i/dx_i|,    z_i = f(x_i | p_{y_i})
        L     = omega L_base + mean_i exp(nll_i)

    The exponential is taken before the mean and in float64, as in the authors' code. Embeddings may be raw.
    `indices_tuple` weighs the samples. With several centres per class (SoftTriple) the condition is the class vector of
    the sample, whose soft assignment is taken as constant: f must not depend on x through its condition.

    Args:
        base_loss: a proxy loss (with `proxies` (C, d), or `class_vectors(embeddings, labels)`), or the name of one:
            `proxy_anchor`, `proxy_nca` (Eq. 6), `soft_triple`. A named one takes `num_classes` and further keywords.
        embedding_size: d.
        omega: weight of the base loss, 0.0075 (Cars 0.01, SOP 0.3).
        preset: size of the flow, `paper` (8 blocks, depth 3, width 128) or `code` (5, 8, 128); `paper`.
        n_blocks, depth, width: in place of the preset's.
        clamp: bound of the log-scales, 2.
        cond: which blocks see the proxy, `dense`, `start`, `mid` or `end`; `dense`.
        proxy_backprop: whether the flow's gradient reaches the proxies, True.
        noise: n in `x <- normalize(x + n u)`, u uniform on [0, 1), for the flow only, 0.
        sigma, temperature: `exp` for `exp(nll / temperature)` or `softplus` of the same; `exp`, 1.
        self_regularization: also train on samples `f^-1(zeta | p_y)`, one per sample of the batch, with weight omega:
            `generate` moves the proxies, `reverse_match` the flow, `generate_and_match` both; None.
        warmup_epochs: with frozen trunk, 1 (SOP 5).
        flow_lr_factor: learning rate of the flow over that of the proxies, 0.0125 (50 / 4000).
        xavier: initialise the flow by Xavier-uniform, False.

    Neither proxies nor flow decay. A step with a gradient that is not finite is skipped. Raises ValueError for unknown
    names, TypeError for a base loss without proxies.

    Source: Roth et al., Non-isotropy Regularization for Proxy-based Deep Metric Learning, CVPR 2022, Eqs. 8-11; section
    4.6 for self-regularisation.
    """

    def __init__(
        self,
        base_loss: nn.Module | str,
        embedding_size: int,
        omega: float = 0.0075,
        *,
        num_classes: int | None = None,
        preset: Literal["paper", "code"] = "paper",
        n_blocks: int | None = None,
        depth: int | None = None,
        width: int | None = None,
        clamp: float = 2.0,
        cond: Condition = "dense",
        proxy_backprop: bool = True,
        noise: float = 0.0,
        sigma: Literal["exp", "softplus"] = "exp",
        temperature: float = 1.0,
        self_regularization: SelfRegularization | None = None,
        warmup_epochs: int = 1,
        flow_lr_factor: float = 50 / 4000,
        xavier: bool = False,
        **base_params: Any,
    ) -> None:
        _check_names(preset, sigma, self_regularization)
        self.self_regularization = self_regularization
        super().__init__()
        self.base_loss = _base_loss(base_loss, num_classes, embedding_size, base_params)
        sizes = zip((n_blocks, depth, width), _PRESETS[preset], strict=True)
        blocks, layers, units = (preset_size if size is None else size for size, preset_size in sizes)
        self.flow = CouplingFlow(embedding_size, embedding_size, blocks, layers, units, clamp, cond, xavier)
        self.needs = merged_needs(Needs(warmup_epochs=warmup_epochs), self.base_loss)
        self.embedding_size, self.omega, self.noise = embedding_size, omega, noise
        self.sigma, self.temperature = sigma, temperature
        self.proxy_backprop, self.flow_lr_factor = proxy_backprop, flow_lr_factor
        self._binding = Binding()

    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Proxies at `lr`, flow at `flow_lr_factor lr`, neither with weight decay."""
        flow = {"params": list(self.flow.parameters()), "lr": self.flow_lr_factor * lr, "weight_decay": 0.0}
        if isinstance(self.base_loss, TrainingPlugin):
            return [*self.base_loss.param_groups(lr, 0.0), flow]
        return [{"params": list(self.base_loss.parameters()), "lr": lr, "weight_decay": 0.0}, flow]

    def bind(self, context: TrainingContext) -> None:
        """Keep the trunk at hand, to look at its gradients."""
        self._binding = Binding(context)
        super().bind(context)

    def on_gradients(self, clock: Clock) -> bool:
        """False where a gradient of loss or trunk is not finite: the authors' gradient scaler skips such steps."""
        finite = gradients_are_finite([*self.parameters(), *self._binding.parameters])
        return super().on_gradients(clock) and finite

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-losses `base_loss` (with omega), `nir_loss` and `self_loss`, all already reduced."""
        c_f.ref_not_supported(embeddings, labels, ref_emb, ref_labels)
        labels = checked_labels(embeddings, labels, embedding_size=self.embedding_size)
        terms = {"base_loss": self.omega * self.base_loss(embeddings, labels, indices_tuple)}
        condition = self.condition(embeddings, labels)
        weights = lmu.convert_to_weights(indices_tuple, labels, dtype=torch.float64)
        terms["nir_loss"] = (weights * self._spread(self.nll(embeddings, condition))).mean()
        if self.self_regularization:
            terms["self_loss"] = self.omega * self._self_loss(condition, labels)
        return {name: {"losses": v, "indices": None, "reduction_type": "already_reduced"} for name, v in terms.items()}

    def condition(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Unit vectors (B, d) that stand for the classes `labels` (B,): proxies, or SoftTriple's class vectors."""
        base: Any = self.base_loss
        vectors: Tensor
        if hasattr(base, "class_vectors"):
            vectors = base.class_vectors(embeddings.detach(), labels)
        else:
            vectors = functional.normalize(base.proxies, dim=1)[labels]
        return vectors if self.proxy_backprop else vectors.detach()

    def nll(self, embeddings: Tensor, condition: Tensor) -> Tensor:
        """Negative log-likelihoods (B,) of embeddings (B, d), without the constant `d/2 log 2 pi`."""
        x = functional.normalize(embeddings, dim=1)
        if self.noise > 0:
            x = functional.normalize(x + self.noise * torch.rand_like(x), dim=1)
        dtype = next(self.flow.parameters()).dtype
        z, log_det = self.flow(x.to(dtype), condition.to(dtype))
        nll: Tensor = 0.5 * z.square().sum(dim=1) - log_det
        return nll

    def _spread(self, nll: Tensor) -> Tensor:
        scaled = nll.double() / self.temperature  # exp overflows at 709 instead of 88
        return scaled.exp() if self.sigma == "exp" else functional.softplus(scaled)

    def generate(self, condition: Tensor) -> Tensor:
        """Unit samples (B, d) of the flow under conditions (B, d)."""
        zeta = torch.randn_like(condition, dtype=next(self.flow.parameters()).dtype)
        samples, _ = self.flow.inverse(zeta, condition.to(zeta.dtype))
        return functional.normalize(samples, dim=1)

    def _self_loss(self, condition: Tensor, labels: Tensor) -> Tensor:
        if self.self_regularization == "reverse_match":
            frozen = {name: p.detach() for name, p in self.base_loss.named_parameters()}
            frozen |= dict(self.base_loss.named_buffers())
            loss: Tensor = functional_call(self.base_loss, frozen, (self.generate(condition.detach()), labels))
            return loss
        samples = self.generate(condition)
        if self.self_regularization == "generate":
            samples = samples.detach()
        matched: Tensor = self.base_loss(samples, labels)
        return matched

    def _sub_loss_names(self) -> list[str]:
        return ["base_loss", "nir_loss"] + ["self_loss"] * (self.self_regularization is not None)


def _check_names(preset: str, sigma: str, self_regularization: str | None) -> None:
    if preset not in _PRESETS:
        raise ValueError(f"preset must be one of {', '.join(_PRESETS)}, got {preset!r}")
    if sigma not in ("exp", "softplus"):
        raise ValueError(f"sigma must be 'exp' or 'softplus', got {sigma!r}")
    if self_regularization not in (None, "generate", "reverse_match", "generate_and_match"):
        raise ValueError(f"unknown self_regularization {self_regularization!r}")


def _base_loss(
    base: nn.Module | str, num_classes: int | None, embedding_size: int, params: Mapping[str, Any]
) -> nn.Module:
    if isinstance(base, nn.Module):
        if params or num_classes is not None:
            raise ValueError(f"set {', '.join(['num_classes', *params])} on the base loss that is given")
        if not (hasattr(base, "proxies") or hasattr(base, "class_vectors")):
            raise TypeError(f"{type(base).__name__} has no proxies to condition a flow on")
        return base
    if base not in _BASES:
        raise ValueError(f"base_loss must be one of {', '.join(_BASES)} or a loss, got {base!r}")
    if num_classes is None:
        raise ValueError(f"base_loss {base!r} needs num_classes")
    make, defaults = _BASES[base]
    return make(num_classes, embedding_size, **{**defaults, **params})
