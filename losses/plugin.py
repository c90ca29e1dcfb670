"""The hook interface between a loss and the loop that trains it, and losses around others, which pass the hooks on.

In pytorch-metric-learning a loss has only `forward`. Some methods need more: a switch after a number of passes over the
data, gradients of the trunk, embeddings of a pool of samples, validation scores, or optimizer groups. A loss with the
mix-in `TrainingPlugin` gets them. Every hook is optional and does nothing by default.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn


def version_of(loss_class: type) -> int:
    """Version of the numbers that a loss class computes from its arguments.

    The version is the class attribute `VERSION`. Raise it by one with every change after which the same arguments give
    other numbers (loss, gradient or starting values). A class without it, like every class of pytorch-metric-learning,
    has version 1. The fingerprint of a training contains it.

    If the version of a base loss in a wrapper's `named_bases` rises, the wrapper's version must rise too: a card that
    names its base loss this way does not show the class.
    """
    version: int = getattr(loss_class, "VERSION", 1)
    return version


Normalization = Literal["unit", "ball"]


@dataclass(frozen=True)
class Needs:
    """Requirements of a loss on the training around it.

    Attributes:
        warmup_epochs: passes over the training images (the authors' epochs) in which the trunk is frozen and only
            embedder and loss are trained; default 0.
        normalization: how evaluation normalises embeddings, `unit`: `v/|v|`, `ball`: `v/max(1, |v|)`; default `unit`.
        validation: whether the loss acts on validation scores (`on_evaluation`), so that a training without validation
            is refused; default False.
    """

    warmup_epochs: int = 0
    normalization: Normalization = "unit"
    validation: bool = False


@dataclass(frozen=True)
class Clock:
    """The progress of a training, as the hooks get it.

    Attributes:
        epoch: 0-based count of protocol epochs (a fixed number of iterations, 100 under MLRC).
        step: 0-based count of optimizer steps.
        steps_per_epoch: iterations in one protocol epoch.
        passes: completed passes over the training images, `images_seen // training_images`: the authors' "epochs".
        warmup: whether the trunk is frozen now; default False.
        total_steps: optimizer steps of the training if nothing ends it early; default 0, not known.
    """

    epoch: int
    step: int
    steps_per_epoch: int
    passes: int
    warmup: bool = False
    total_steps: int = 0


@dataclass(frozen=True)
class TrainingContext:
    """The parts of a training that the loop gives to the loss in `bind`.

    A copied or unpickled loss holds None in its place, and no trunk, pool or generator. Bind it again before it is
    trained further.

    Attributes:
        trunk_parameters: the model's trainable parameters in a fixed order, without those of the loss.
        num_classes: number of training classes, C.
        generator: the generator for random draws of the loss.
        embed_pool: `embed_pool(per_class) -> (C, per_class, d)`: raw embeddings of training images of every class, in
            class order, in eval mode and without gradient. Images of a class are drawn without replacement until the
            class is used up.
    """

    trunk_parameters: Sequence[nn.Parameter]
    num_classes: int
    generator: torch.Generator
    embed_pool: Callable[[int], Tensor] = field(repr=False)

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _unbound, ()


def _unbound() -> None:
    """What copies and pickles of a context are."""


class LossScale:
    """What a loss is multiplied by before its backward pass, as by a `GradScaler`.

    A copied or unpickled loss holds None in its place.
    """

    def __init__(self) -> None:
        self._factor: Tensor | None = None
        self._is_large: bool | None = None

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _unbound, ()

    def watch(self, value: Tensor) -> None:
        """Take a term of the loss in the forward pass. Its gradient is what the loss is multiplied by."""
        if self._is_large is None and value.requires_grad:
            value.register_hook(self._keep)

    def _keep(self, gradient: Tensor) -> None:
        # Not read here, where a GPU would wait, and the capture of a CUDA graph fail.
        self._factor = gradient.detach()

    @property
    def factor(self) -> float:
        """The factor of the last backward pass; 1 before the first."""
        return 1.0 if self._factor is None else float(self._factor)

    @property
    def is_large(self) -> bool:
        """Whether it is one of a scaler, by the first step; False before it."""
        if self._is_large is None and self._factor is not None:
            self._is_large = self.factor >= _SMALLEST_SCALE
        return bool(self._is_large)


class ScaleCheck(LossScale):
    """Refuses gradients that a `GradScaler` has multiplied and not yet divided, in the first step of a training.

    Args:
        parameter: one whose gradients the loss changes.
    """

    def __init__(self, parameter: nn.Parameter) -> None:
        super().__init__()
        self._parameter, self._largest = parameter, parameter.new_zeros(())
        self._handle: Any = parameter.register_hook(self._keep_largest)

    def _keep_largest(self, gradient: Tensor) -> None:
        self._largest = gradient.detach().abs().amax()

    def __call__(self, name: str) -> None:
        """Raise ValueError if the gradients of the loss `name` are scaled; called before it acts on them."""
        now = self._parameter.grad
        if self._handle is None or now is None or not 0 < (before := float(self._largest)) < math.inf:
            return
        self._handle.remove()
        self._handle = None
        # Far from both: divided, they are smaller by the factor; summed over processes or batches, by a few.
        if self.is_large and float(now.abs().amax()) * math.sqrt(self.factor) > before:
            raise ValueError(
                f"the gradients are multiplied by {self.factor:g}, as by a GradScaler, and {name} acts on them: call "
                "scaler.unscale_(optimizer) before the hook on_gradients, that is, before schedule.gradients_ready()"
            )


_SMALLEST_SCALE = 1024.0
"""Nobody weighs a loss by so much; a scaler begins with 65,536."""


def warn_without_hooks(loss: nn.Module, missing: str) -> None:
    """Warn that nobody calls the hooks of a loss, and what it lacks therefore."""
    warnings.warn(
        f"the hooks of {type(loss).__name__} are not called: {missing}, so this is not the method of its paper; use "
        f"{__package__}.Schedule in your loop or trainer",
        stacklevel=2,
    )


class TrainingPlugin:
    """Mix-in for losses that take part in training beyond `forward` (specification: losses, section 0).

    The loop calls, in this order: `param_groups` when it builds the optimizer; `bind` once, with model and loss on
    their device; `on_epoch_start`; in each iteration `on_step_start`, forward, backward, `on_gradients`, optimizer
    step; `on_evaluation` after every validation. Keep switches, queues and counters in buffers, so that `state_dict`
    holds the complete state.
    """

    needs = Needs()

    _context: TrainingContext | None = None
    _scale: LossScale | None = None

    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Optimizer groups of the parameters of this loss, as `torch.optim` takes them.

        Args:
            lr: learning rate of the loss.
            weight_decay: weight decay of the loss.
        """
        assert isinstance(self, nn.Module)
        parameters = [p for p in self.parameters() if p.requires_grad]
        return [{"params": parameters, "lr": lr, "weight_decay": weight_decay}] if parameters else []

    def bind(self, context: TrainingContext) -> None:
        """Keep the context of the training. Called once before step 0."""
        self._context = context

    def on_epoch_start(self, clock: Clock) -> None:
        """Called before the first iteration of every protocol epoch."""

    def on_step_start(self, clock: Clock) -> None:
        """Called before every forward."""

    def on_gradients(self, clock: Clock) -> bool:
        """Called after backward and before the optimizer step. Return False to skip the step."""
        return True

    def on_evaluation(self, clock: Clock, metrics: Mapping[str, float]) -> None:
        """Called after each validation with its scores (`map_at_r`, `precision_at_1`, ...); larger is better."""


_WITH_REFERENCES = {
    *("AngularLoss", "CircleLoss", "ContrastiveLoss", "CosineContrastiveLoss", "GeneralizedLiftedStructureLoss"),
    *("IntraPairVarianceLoss", "MarginLoss", "MultiSimilarityLoss", "NCALoss", "NTXentLoss", "SupConLoss"),
    *("SignalToNoiseRatioContrastiveLoss", "TripletMarginLoss", "TupletMarginLoss"),
}
"""Losses that compare a batch with other rows: those that `CrossBatchMemory` of version 2.9 takes without lifted
structure, which compares the wrong ones, and ours."""


def require_references(wrapper: type, base_loss: nn.Module) -> None:
    """Raise ValueError for a loss of pytorch-metric-learning or of this package that has no use for `ref_emb`.

    A triplet loss with `swap` compares the wrong rows in version 2.9. Losses of others are taken as they are.
    """
    name, package = type(base_loss).__name__, type(base_loss).__module__.partition(".")[0]
    known = name in _WITH_REFERENCES and not getattr(base_loss, "swap", False)
    if package in ("pytorch_metric_learning", __package__) and not known:
        raise ValueError(
            f"{wrapper.__name__} cannot wrap {name} as it is set, which does not compare a batch with other "
            "rows; use a pair loss, for example CosineContrastiveLoss or TripletMarginLoss without swap"
        )


def require_proxies(wrapper: type, base_loss: nn.Module, embedding_size: int) -> None:
    """Raise ValueError for a base loss that has not one proxy per class in `proxies` (C, d)."""
    proxies: Any = getattr(base_loss, "proxies", None)
    shape = tuple(proxies.shape) if isinstance(proxies, Tensor) else ()
    expected = (getattr(base_loss, "num_classes", len(proxies) if shape else "C"), embedding_size)
    if shape != expected:
        raise ValueError(
            f"{wrapper.__name__} needs a base loss with one proxy per class, {expected}; {type(base_loss).__name__} "
            f"has {shape or 'none'}: use one such as {__package__}.ProxyAnchorLoss"
        )


class PluginWrapper(TrainingPlugin):
    """Mix-in for a loss around another loss, its `base_loss`.

    The first argument of the constructor is the base loss, a built object. A method card gives it as a nested component
    or, for a base in `named_bases`, by its name, with the settings of both losses side by side. `from_card` takes both.
    The needs are those of the wrapper and of the base loss together: the wrapper's first, and the longer warm-up.

    Every hook is passed on to the base loss if that is a `TrainingPlugin`. A wrapper that overrides a hook acts first
    and then calls `super()`.
    """

    named_bases: ClassVar[Mapping[str, Callable[..., nn.Module]]] = MappingProxyType({})
    """Names that a card may give for the base loss, and the functions that build it."""

    default_base: ClassVar[str | None] = None
    """Name of the base loss of a card that gives none; None if a card must give one."""

    base_loss: nn.Module

    def __init__(self, base_loss: nn.Module, **kwargs: Any) -> None:
        """Take the base loss, and PML's keywords; raise ValueError for what is none, or only the base loss can use."""
        name = type(self).__name__
        if not isinstance(base_loss, nn.Module):
            raise ValueError(
                f"{name} takes a built loss as base_loss, got {base_loss!r}; a base loss by its name goes to "
                f"{name}.from_card"
            )
        for keyword in ("distance", "weight_regularizer", "weight_init_func"):
            if keyword in kwargs:
                raise ValueError(f"{name} has no use for {keyword}; set it on the base loss")
        super().__init__(**kwargs)
        self.base_loss = base_loss
        own, others = type(self).needs, self._inner.needs
        self.needs = Needs(
            warmup_epochs=max(own.warmup_epochs, others.warmup_epochs),
            normalization=own.normalization if own.normalization != "unit" else others.normalization,
            validation=own.validation or others.validation,
        )

    @classmethod
    def from_card(cls, **arguments: Any) -> Self:
        """Build the wrapper from the arguments of a method card.

        Args:
            **arguments: those of the constructor. `base_loss`, or `base`, is a built loss or one of `named_bases`. With
                a name, the settings of the base loss are among these arguments too.

        Raises:
            ValueError: for an unknown name, and for everything that the constructors refuse.
            TypeError: for an argument that neither constructor takes.
        """
        base = arguments.pop("base_loss", None) or arguments.pop("base", cls.default_base)
        if isinstance(base, nn.Module):
            return cls(base, **arguments)
        if base not in cls.named_bases:
            names = ", ".join(cls.named_bases)
            raise ValueError(f"base_loss must be one of {names}, or a component of kind loss, got {base!r}")
        build = cls.named_bases[base]
        base_names, wrapper_names = inspect.signature(build).parameters, inspect.signature(cls).parameters
        for_base = {key: value for key, value in arguments.items() if key in base_names}
        # The embedding size goes to both. An argument that neither takes is refused by the wrapper's constructor.
        for_wrapper = {key: value for key, value in arguments.items() if key in wrapper_names or key not in for_base}
        return cls(build(**for_base), **for_wrapper)

    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """The groups of the base loss, then one group of the parameters that only the wrapper has."""
        if not isinstance(self.base_loss, TrainingPlugin):
            return super().param_groups(lr, weight_decay)
        assert isinstance(self, nn.Module)
        inner = {id(p) for p in self.base_loss.parameters()}
        outer = [p for p in self.parameters() if p.requires_grad and id(p) not in inner]
        groups = self.base_loss.param_groups(lr, weight_decay)
        return [*groups, {"params": outer, "lr": lr, "weight_decay": weight_decay}] if outer else groups

    @property
    def _inner(self) -> TrainingPlugin:
        return self.base_loss if isinstance(self.base_loss, TrainingPlugin) else TrainingPlugin()

    def bind(self, context: TrainingContext) -> None:
        """Passed on to the base loss."""
        super().bind(context)
        self._inner.bind(context)

    def on_epoch_start(self, clock: Clock) -> None:
        """Passed on to the base loss."""
        self._inner.on_epoch_start(clock)

    def on_step_start(self, clock: Clock) -> None:
        """Passed on to the base loss."""
        self._inner.on_step_start(clock)

    def on_gradients(self, clock: Clock) -> bool:
        """Passed on to the base loss."""
        return self._inner.on_gradients(clock)

    def on_evaluation(self, clock: Clock, metrics: Mapping[str, float]) -> None:
        """Passed on to the base loss."""
        self._inner.on_evaluation(clock, metrics)
