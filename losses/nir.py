"""Non-isotropy regularisation: a conditional flow models how the samples of a class lie around its proxy."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from .base import MetricLoss, already_reduced, checked_labels, require_one_of
from .coupling_flow import Condition, CouplingFlow
from .mined import weights_of
from .plugin import Clock, LossScale, Needs, PluginWrapper, TrainingContext, TrainingPlugin, require_proxies
from .proxy_anchor import ProxyAnchorLoss
from .proxy_nca import ProxyNCALoss
from .soft_triple import SoftTripleLoss

Preset = Literal["paper", "code"]
Sigma = Literal["exp", "softplus"]
SelfRegularization = Literal["generate", "reverse_match", "generate_and_match"]

# Blocks, linear layers and width of the flow, as in the paper and as in the authors' code and run scripts. The paper
# does not state the number of layers; three is our choice.
_PRESETS: Mapping[str, tuple[int, int, int]] = MappingProxyType({"paper": (8, 3, 128), "code": (5, 8, 128)})

# The proxies of NIR start from N(0, 1) / 8; those of plain Proxy-Anchor do not.
_EIGHTH = partial(nn.init.normal_, std=0.125)


class NIRLoss(PluginWrapper, MetricLoss):
    """A proxy loss plus the likelihood of the samples under a flow conditioned on their proxy.

    With unit embeddings x (B, d), unit proxies p (C, d) and the flow f (`CouplingFlow`)::

        nll_i = |z_i|^2 / 2 - log |det dz_i/dx_i|,    z_i = f(x_i | p_{y_i})
        L     = omega L_base + mean_i exp(nll_i)

    The exponential is taken before the mean and in float64, as in the authors' code. Embeddings may have any norm.
    `indices_tuple` weights the samples. With several centres per class (SoftTriple) the condition is the class vector
    of the sample. Its soft assignment is a constant, because f must not depend on x through its condition.

    Proxies and flow have no weight decay, and the flow has a far lower learning rate than the proxies: build the
    optimizer from `param_groups`. At the rate of the proxies the exponential overflows within a few steps.
    A step with a gradient that is not finite is skipped by loops that call `on_gradients`, and by a `GradScaler`.

    A card may name the base loss: `proxy_anchor`, `proxy_nca` (Eq. 6) or `soft_triple`; it then also gives
    `num_classes`.

    Args:
        base_loss: a proxy loss with one row per class in `proxies` (C, d), or with a method
            `class_vectors(embeddings, labels)`, such as SoftTripleLoss.
        embedding_size: d.
        omega: weight of the base loss; default 0.0075 (the authors: Cars 0.01, SOP 0.3).
        preset: size of the flow, `paper` (8 blocks, depth 3, width 128) or `code` (5, 8, 128); default `paper`.
        n_blocks: replaces the preset's number of blocks.
        depth: replaces the preset's depth.
        width: replaces the preset's width.
        clamp: bound of the log-scales; default 2.
        cond: which blocks get the proxy: `dense`, `start`, `mid` or `end`, as in `CouplingFlow`; default `dense`.
        proxy_backprop: whether the flow's gradient reaches the proxies; default True.
        sigma: `exp` for `exp(nll / temperature)`, `softplus` for `softplus(nll / temperature)`; default `exp`.
        temperature: see `sigma`; default 1.
        self_regularization: also train on samples `f^-1(zeta | p_y)`, one per sample of the batch, with weight omega.
            `generate` moves the proxies, `reverse_match` the flow, `generate_and_match` both. Default None: no such
            samples.
        flow_lr_factor: learning rate of the flow divided by that of the proxies; default 0.0125 (50 / 4000).
        **kwargs: PML's `reducer`, `embedding_regularizer`, `embedding_reg_weight` and `collect_stats`.

    Raises:
        ValueError: for unknown names, for a base loss that is not built, does not give one vector per class, or
            projects into the ball.

    Source: Roth et al., Non-isotropy Regularization for Proxy-based Deep Metric Learning, CVPR 2022, Eqs. 8-11; section
    4.6 for self-regularisation.
    """

    VERSION = 3
    """Version 1 was around SoftTriple's version 1. Version 2 had a flow that rounded differently."""

    needs = Needs(warmup_epochs=1)

    named_bases = MappingProxyType(
        {
            "proxy_anchor": partial(ProxyAnchorLoss, weight_init_func=_EIGHTH),
            "proxy_nca": partial(ProxyNCALoss, variant="anchor_form"),
            "soft_triple": SoftTripleLoss,
        }
    )

    def __init__(
        self,
        base_loss: nn.Module,
        embedding_size: int,
        omega: float = 0.0075,
        *,
        preset: Preset = "paper",
        n_blocks: int | None = None,
        depth: int | None = None,
        width: int | None = None,
        clamp: float = 2.0,
        cond: Condition = "dense",
        proxy_backprop: bool = True,
        sigma: Sigma = "exp",
        temperature: float = 1.0,
        self_regularization: SelfRegularization | None = None,
        flow_lr_factor: float = 50 / 4000,
        **kwargs: Any,
    ) -> None:
        require_one_of(Preset, "preset", preset)
        require_one_of(Sigma, "sigma", sigma)
        if self_regularization is not None:
            require_one_of(SelfRegularization, "self_regularization", self_regularization)
        self.self_regularization = self_regularization
        # PML's constructor asks for the names.
        self.sub_losses = ("base_loss", "nir_loss", *(("self_loss",) if self_regularization else ()))
        super().__init__(base_loss, **kwargs)
        if isinstance(base_loss, TrainingPlugin) and base_loss.needs.normalization != "unit":
            name = type(base_loss).__name__
            raise ValueError(f"NIRLoss needs unit vectors, {name} has none; use ProxyAnchorLoss, ProxyNCALoss, ...")
        if not hasattr(base_loss, "class_vectors"):
            require_proxies(NIRLoss, base_loss, embedding_size)
        sizes = zip((n_blocks, depth, width), _PRESETS[preset], strict=True)
        blocks, layers, units = (preset_size if size is None else size for size, preset_size in sizes)
        self.flow = CouplingFlow(embedding_size, embedding_size, blocks, layers, units, clamp, cond)
        self.embedding_size, self.omega = embedding_size, omega
        self.sigma, self.temperature = sigma, temperature
        self.proxy_backprop, self.flow_lr_factor = proxy_backprop, flow_lr_factor

    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Optimizer groups: base loss at `lr`, flow at `flow_lr_factor lr`, both without weight decay."""
        flow = {"params": list(self.flow.parameters()), "lr": self.flow_lr_factor * lr, "weight_decay": 0.0}
        if isinstance(self.base_loss, TrainingPlugin):
            return [*self.base_loss.param_groups(lr, 0.0), flow]
        return [{"params": list(self.base_loss.parameters()), "lr": lr, "weight_decay": 0.0}, flow]

    def bind(self, context: TrainingContext) -> None:
        """Take the trunk, whose gradients are looked at too."""
        super().bind(context)
        self._scale = LossScale()

    def on_gradients(self, clock: Clock) -> bool:
        """False if a gradient of loss or trunk is not finite, as the authors' gradient scaler skips such steps.

        Under a `GradScaler` that is the scaler's, which is asked for every step.
        """
        may_step = super().on_gradients(clock)
        if self._scale is not None and self._scale.is_large:
            return may_step
        trunk = self._context.trunk_parameters if self._context else ()
        return may_step and _are_finite([*self.parameters(), *trunk])

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: sub-losses `base_loss` (times omega), `nir_loss` and `self_loss`, all already reduced."""
        labels = checked_labels(embeddings, labels, embedding_size=self.embedding_size)
        terms = {"base_loss": self.omega * self.base_loss(embeddings, labels, indices_tuple)}
        if self._scale is not None:
            self._scale.watch(terms["base_loss"])
        condition = self.condition(embeddings, labels)
        weights = weights_of(indices_tuple, labels, torch.float64)
        terms["nir_loss"] = (weights * self._spread(self.nll(embeddings, condition))).mean()
        if self.self_regularization:
            terms["self_loss"] = self.omega * self._self_loss(condition, labels)
        return already_reduced(**terms)

    def condition(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Unit vectors (B, d) for the classes `labels` (B,): proxies, or SoftTriple's class vectors."""
        base: Any = self.base_loss
        vectors: Tensor
        if hasattr(base, "class_vectors"):
            vectors = base.class_vectors(embeddings.detach(), labels)
        else:
            vectors = functional.normalize(base.proxies, dim=1)[labels]
        return vectors if self.proxy_backprop else vectors.detach()

    def nll(self, embeddings: Tensor, condition: Tensor) -> Tensor:
        """Negative log-likelihoods (B,) of embeddings (B, d) without the constant `d/2 log 2 pi`.

        The condition is (B, d), as `condition()` returns it.
        """
        x = functional.normalize(embeddings, dim=1)
        dtype = next(self.flow.parameters()).dtype
        z, log_det = self.flow(x.to(dtype), condition.to(dtype))
        nll: Tensor = 0.5 * z.square().sum(dim=1) - log_det
        return nll

    def _spread(self, nll: Tensor) -> Tensor:
        scaled = nll.double() / self.temperature  # exp overflows at 709 instead of 88
        return scaled.exp() if self.sigma == "exp" else functional.softplus(scaled)

    def generate(self, condition: Tensor) -> Tensor:
        """Draw one unit sample (B, d) of the flow for each condition (B, d)."""
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


def _are_finite(parameters: Sequence[nn.Parameter]) -> bool:
    """Whether all gradients that exist are finite; one transfer from a GPU."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    # On a CPU the length is found faster: 64 matrices of 256 x 256 take 0.4 ms and not 11 ms (one core, 100 calls).
    # If it is finite, all gradients are. If it is not, squares may have overflowed; the largest absolute value cannot.
    if gradients and gradients[0].device.type == "cpu" and nn.utils.get_total_norm(gradients).isfinite():
        return True
    return bool(nn.utils.get_total_norm(gradients, math.inf).isfinite())
