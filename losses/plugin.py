"""The hook interface between a loss and the loop that trains it.

In pytorch-metric-learning a loss has only `forward`. Some methods need more: a switch after a number of passes over the
data, gradients of the trunk, embeddings of a pool of samples, validation scores, or optimizer groups. A loss with the
mix-in `TrainingPlugin` gets them. Every hook is optional and does nothing by default.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

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
