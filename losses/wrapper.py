"""A loss around another loss: the hooks of the inner one are called through the outer one."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from losses.plugin import Clock, Needs, TrainingContext, TrainingPlugin


def merged_needs(own: Needs, inner: nn.Module) -> Needs:
    """Wishes of a wrapper and of the loss it holds: the longer warm-up, and what only the inner loss asks for."""
    if not isinstance(inner, TrainingPlugin):
        return own
    return Needs(
        warmup_epochs=max(own.warmup_epochs, inner.needs.warmup_epochs),
        samples_per_class=own.samples_per_class or inner.needs.samples_per_class,
        normalization=inner.needs.normalization,
    )


class PluginWrapper(TrainingPlugin):
    """Mix-in that hands every hook on to the loss in `base_loss`, if that is a `TrainingPlugin` itself.

    A wrapper with an action of its own takes it first and then calls `super()`.
    """

    base_loss: nn.Module

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
