"""A loss around another loss: one way to build it, and hooks that reach the inner loss through the outer one."""

import copy
import inspect
from collections.abc import Callable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Self

import torch
from torch import nn

from losses.plugin import Clock, Needs, TrainingContext, TrainingPlugin


def merged_needs(own: Needs, inner: nn.Module) -> Needs:
    """Wishes of a wrapper and of the loss it holds: the longer warm-up, and what only the inner loss asks for."""
    if not isinstance(inner, TrainingPlugin):
        return own
    return Needs(
        warmup_epochs=max(own.warmup_epochs, inner.needs.warmup_epochs),
        samples_per_class=own.samples_per_class or inner.needs.samples_per_class,
        normalization=own.normalization if own.normalization != "unit" else inner.needs.normalization,
        validation=own.validation or inner.needs.validation,
    )


def require_module(wrapper: type, base_loss: Any) -> None:
    """Raises ValueError for a base loss that is not a loss object, such as the name of one."""
    if not isinstance(base_loss, nn.Module):
        raise ValueError(
            f"{wrapper.__name__} takes a built loss as base_loss, got {base_loss!r}; "
            f"a base loss by its name goes to {wrapper.__name__}.from_card"
        )


def require_references(wrapper: type, base_loss: nn.Module, embedding_size: int) -> None:
    """Raises ValueError for a base loss that cannot compare a batch with other rows (`ref_emb`).

    A copy of the loss is called once on a small batch, without gradient; no random number of torch is used up.
    """
    probe = copy.deepcopy(base_loss).eval()
    like = next((t for t in chain(probe.parameters(), probe.buffers()) if t.is_floating_point()), torch.zeros(0))
    rows = torch.eye(4, embedding_size, dtype=like.dtype, device=like.device)
    labels = torch.tensor([0, 0, 1, 1], device=like.device)
    try:
        with torch.no_grad(), torch.random.fork_rng([]):
            probe(rows, labels, None, rows.flip(0), labels.flip(0))
    except ValueError as error:
        if "ref_emb" not in str(error):
            raise
        raise ValueError(
            f"{wrapper.__name__} cannot wrap {type(base_loss).__name__}, which takes no ref_emb; "
            "use a pair loss, for example CosineContrastiveLoss or TripletMarginLoss"
        ) from error


def wrapper_keywords(wrapper: type, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """PML's keywords for a wrapper itself; raises ValueError for what only its base loss can use."""
    for name in ("distance", "weight_regularizer", "weight_init_func"):
        if name in kwargs:
            raise ValueError(f"{wrapper.__name__} has no use for {name}; set it on the base loss")
    return kwargs


class PluginWrapper(TrainingPlugin):
    """Mix-in for a loss around another one, which it keeps as `base_loss`.

    The constructor takes the base loss as a built object, first of its arguments. A method card describes it as a
    nested component, or, for a base in `named_bases`, by its name with its settings beside those of the wrapper; both
    come in through `from_card`.

    Every hook is handed on to the base loss, if that is a `TrainingPlugin` itself. A wrapper with an action of its own
    takes it first and then calls `super()`.
    """

    named_bases: ClassVar[Mapping[str, Callable[..., nn.Module]]] = MappingProxyType({})
    """Names that a card may give for the base loss, with what builds it."""

    default_base: ClassVar[str | None] = None
    """The name a card gets that says nothing of the base loss; None if it has to."""

    base_loss: nn.Module

    @classmethod
    def from_card(cls, **arguments: Any) -> Self:
        """The wrapper from the arguments of a method card.

        Args:
            **arguments: those of the constructor. `base_loss` (or `base`, as in older cards) is a built loss or one of
                `named_bases`. A base loss by name takes its settings from these arguments as well.

        Returns:
            The wrapper around its base loss.

        Raises:
            ValueError: for an unknown name, and for everything the constructors refuse.
            TypeError: for an argument that neither of the two takes.
        """
        base = arguments.pop("base_loss", None) or arguments.pop("base", cls.default_base)
        if isinstance(base, nn.Module):
            return cls(base, **arguments)  # type: ignore[call-arg]
        if base not in cls.named_bases:
            names = ", ".join(cls.named_bases)
            raise ValueError(f"base_loss must be one of {names}, or a component of kind loss, got {base!r}")
        build = cls.named_bases[base]
        known_to_base, known_here = inspect.signature(build).parameters, inspect.signature(cls).parameters
        for_base = {key: value for key, value in arguments.items() if key in known_to_base}
        # What both take, the embedding size, goes to both; what nobody takes, the wrapper's constructor refuses.
        for_wrapper = {key: value for key, value in arguments.items() if key in known_here or key not in for_base}
        return cls(build(**for_base), **for_wrapper)  # type: ignore[call-arg]

    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """The groups of the inner loss, then one of the parameters that only the wrapper has."""
        if not isinstance(self.base_loss, TrainingPlugin):
            return super().param_groups(lr, weight_decay)
        assert isinstance(self, nn.Module)
        inner = {id(p) for p in self.base_loss.parameters()}
        own = [p for p in self.parameters() if p.requires_grad and id(p) not in inner]
        groups = self.base_loss.param_groups(lr, weight_decay)
        return [*groups, {"params": own, "lr": lr, "weight_decay": weight_decay}] if own else groups

    def bind(self, context: TrainingContext) -> None:
        """Handed on."""
        if isinstance(self.base_loss, TrainingPlugin):
            self.base_loss.bind(context)

    def on_epoch_start(self, clock: Clock) -> None:
        """Handed on."""
        if isinstance(self.base_loss, TrainingPlugin):
            self.base_loss.on_epoch_start(clock)

    def on_step_start(self, clock: Clock) -> None:
        """Handed on."""
        if isinstance(self.base_loss, TrainingPlugin):
            self.base_loss.on_step_start(clock)

    def on_gradients(self, clock: Clock) -> bool:
        """Handed on."""
        return self.base_loss.on_gradients(clock) if isinstance(self.base_loss, TrainingPlugin) else True

    def on_evaluation(self, clock: Clock, metrics: Mapping[str, float]) -> None:
        """Handed on."""
        if isinstance(self.base_loss, TrainingPlugin):
            self.base_loss.on_evaluation(clock, metrics)
