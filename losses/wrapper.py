"""Base of losses around another loss: building them from a card, and passing hooks on to the inner loss."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from pytorch_metric_learning.losses import CrossBatchMemory
from torch import Tensor, nn

from .plugin import Clock, Needs, TrainingContext, TrainingPlugin


def require_references(wrapper: type, base_loss: nn.Module) -> None:
    """Raise ValueError for a loss of pytorch-metric-learning or of this package that has no use for `ref_emb`.

    The library names those that have; two that it allows compare the wrong rows. Losses of others are taken as they
    are.
    """
    name, package = type(base_loss).__name__, type(base_loss).__module__.partition(".")[0]
    pair_losses = {"CosineContrastiveLoss", *CrossBatchMemory.supported_losses()} - {"LiftedStructureLoss"}
    known = name in pair_losses and not getattr(base_loss, "swap", False)
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
            f"has {shape or 'none'}: use one such as ProxyAnchorLoss"
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
