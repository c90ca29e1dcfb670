"""A mix-in for losses that notes which hooks of `TrainingPlugin` were called."""

from collections.abc import Mapping

from losses.plugin import Clock, TrainingContext, TrainingPlugin


class Listening(TrainingPlugin):
    """Stands before the class of a loss. heard: the names of the hooks in the order of their calls."""

    heard: tuple[str, ...] = ()

    def bind(self, context: TrainingContext) -> None:
        self.heard += ("bind",)

    def on_epoch_start(self, clock: Clock) -> None:
        self.heard += ("epoch",)

    def on_step_start(self, clock: Clock) -> None:
        self.heard += ("step",)

    def on_gradients(self, clock: Clock) -> bool:
        self.heard += ("gradients",)
        return False

    def on_evaluation(self, clock: Clock, metrics: Mapping[str, float]) -> None:
        self.heard += ("evaluation",)
