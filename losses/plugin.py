"""The one hook interface between a loss and the loop that trains it.

pytorch-metric-learning gives a loss nothing but `forward`. Some methods need more: switches that flip after a number of
passes over the data, gradients of the trunk, embeddings of a pool of samples, the validation score, or wishes about the
optimizer. A loss that mixes in `TrainingPlugin` gets them; every member is optional and does nothing by default.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

Normalization = Literal["unit", "ball"]


@dataclass(frozen=True)
class Needs:
    """Static wishes of a loss about the training around it.

    Attributes:
        warmup_epochs: the authors' epochs, that is passes over the training images, in which the trunk is frozen and
            only embedder and loss train.
        samples_per_class: images per class in a batch; None leaves it to the method card.
        normalization: how evaluation normalises, `unit`: `v/|v|`, `ball`: `v/max(1, |v|)`.
        validation: the loss acts on validation scores (`on_evaluation`), so a training without any is not its method.
    """

    warmup_epochs: int = 0
    samples_per_class: int | None = None
    normalization: Normalization = "unit"
    validation: bool = False


@dataclass(frozen=True)
class Clock:
    """Where a training stands, as hooks see it.

    Attributes:
        epoch: 0-based count of protocol epochs (a fixed number of iterations, 100 under MLRC).
        step: 0-based count of optimizer steps.
        steps_per_epoch: iterations in one protocol epoch.
        passes: completed passes over the training images, `images_seen // training_images`: the authors' "epochs".
        warmup: the trunk is frozen now.
    """

    epoch: int
    step: int
    steps_per_epoch: int
    passes: int
    warmup: bool = False


@dataclass(frozen=True)
class TrainingContext:
    """What a loop lends a loss for the length of one training.

    Attributes:
        trunk_parameters: the model's trainable parameters in a fixed order, none of the loss's.
        num_classes: training classes.
        generator: random numbers for the loss's own draws.
        embed_pool: `embed_pool(per_class) -> (C, per_class, d)` raw embeddings of training images of every class in
            class order, drawn without replacement inside a class until it is used up, in eval mode and without
            gradient.
    """

    trunk_parameters: Sequence[nn.Parameter]
    num_classes: int
    generator: torch.Generator
    embed_pool: Callable[[int], Tensor] = field(repr=False)


class TrainingPlugin:
    """Mix-in for losses that take part in training beyond `forward` (specification: losses, section 0).

    The loop calls, in this order: `param_groups` when it builds the optimizer; `bind` once, model and loss on their
    device; `on_epoch_start`; per iteration `on_step_start`, forward, backward, `on_gradients`, optimizer step; after
    every validation `on_evaluation`. Switches, queues and counters belong in buffers: `state_dict` resumes exactly.
    """

    needs = Needs()

    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Optimizer groups of this module's own parameters, given the loss's learning rate and weight decay."""
        assert isinstance(self, nn.Module)
        parameters = [p for p in self.parameters() if p.requires_grad]
        return [{"params": parameters, "lr": lr, "weight_decay": weight_decay}] if parameters else []

    def bind(self, context: TrainingContext) -> None:
        """Called once before step 0."""

    def on_epoch_start(self, clock: Clock) -> None:
        """Called before the first iteration of every protocol epoch."""

    def on_step_start(self, clock: Clock) -> None:
        """Called before every forward."""

    def on_gradients(self, clock: Clock) -> bool:
        """Called after backward and before the optimizer step; False skips the step."""
        return True

    def on_evaluation(self, clock: Clock, metrics: Mapping[str, float]) -> None:
        """Called after each validation with larger-is-better metrics (`map_at_r`, `precision_at_1`, ...)."""
