"""Calls the hooks of a loss in a trainer of pytorch-metric-learning (PML)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_metric_learning.utils import common_functions as c_f
from torch import Tensor, nn
from torch.utils.data import default_collate

from .plugin import TrainingPlugin
from .schedule import Schedule


def attach(
    loss: TrainingPlugin,
    trainer: Any,
    *,
    labels: NDArray[np.int64] | Sequence[int] | Tensor | None = None,
    validate: Callable[[Any], Mapping[str, float]] | None = None,
    seed: int = 0,
) -> Schedule:
    """Call the hooks of a loss in a trainer of pytorch-metric-learning (PML).

    Call it once, after the trainer is made, with model and loss on their device, and before `trainer.train`. Build the
    optimizer of the loss from `loss.param_groups(lr, weight_decay)`. If a training ends within the loss's warm-up, call
    `release` of the schedule. The hooks hang on the trainer, so model and loss can be copied and saved at any time.

    A step starts before the trainer computes its loss, `on_gradients` is the first of the trainer's gradient clippers,
    and validation runs in its hook at the end of an epoch, before the one that it had. A step that the loss skips gets
    no gradients, which torch's optimizers leave out.

    Args:
        loss: the loss with hooks; it may be part of the trainer's loss function.
        trainer: a trainer of PML whose models are `trunk` and, if any, `embedder`.
        labels: class of every training image as 0..C-1, (n,); default None, which takes the dataset's `targets`,
            `labels` or second tensor.
        validate: function that takes the trainer and returns validation scores by name, where larger is better. It is
            called once now and after every epoch. Losses that act on validation need it (`CCPLoss`); default None.
        seed: seed of the loss's own draws; default 0.

    Returns:
        The schedule that calls the hooks.

    Raises:
        ValueError: if the labels are not known, the loss needs `validate`, or it is attached to this trainer already.
    """
    key = f"hooks of loss {id(loss)}"
    if loss.needs.validation and validate is None:
        raise ValueError(f"{type(loss).__name__} acts on validation scores; give validate=")
    if key in (trainer.gradient_clippers or {}):
        raise ValueError(f"{type(loss).__name__} is attached to this trainer already; make another trainer")
    trunk = trainer.models["trunk"]
    schedule = Schedule(
        loss,
        nn.Sequential(trunk, trainer.models["embedder"]),
        c_f.process_label(_labels(trainer, labels), trainer.label_hierarchy_level, trainer.label_mapper),
        trainer.batch_size,
        trunk=trunk,
        images=partial(_inputs, trainer),
        steps_per_epoch=trainer.iterations_per_epoch,
        seed=seed,
    )
    _hook_in(trainer, schedule, key, validate)
    return schedule


def _hook_in(trainer: Any, schedule: Schedule, key: str, validate: Callable[[Any], Mapping[str, float]] | None) -> None:
    """Let the trainer call the schedule, beside what it called before."""
    calculate_loss, end_of_epoch = trainer.calculate_loss, trainer.end_of_epoch_hook

    def evaluated() -> None:
        if validate is not None:
            schedule.evaluated(validate(trainer))

    def step(batch: Any) -> None:
        schedule.start_step()
        calculate_loss(batch)

    def after_backward() -> None:
        if not schedule.gradients_ready():
            for optimizer in trainer.optimizers.values():
                optimizer.zero_grad(set_to_none=True)

    def ended(trainer: Any) -> Any:
        evaluated()
        return end_of_epoch(trainer)

    evaluated()
    trainer.calculate_loss, trainer.end_of_epoch_hook = step, ended
    trainer.gradient_clippers = {key: after_backward, **(trainer.gradient_clippers or {})}


def _labels(trainer: Any, labels: Any) -> Tensor:
    """The labels as given, or those of the trainer's dataset."""
    dataset = trainer.dataset
    tensors = getattr(dataset, "tensors", (None, None))
    for known in (labels, getattr(dataset, "targets", None), getattr(dataset, "labels", None), tensors[1]):
        if known is not None:
            return torch.as_tensor(known)
    raise ValueError("the dataset has neither targets nor labels; give labels=, the class of every training image")


def _inputs(trainer: Any, rows: NDArray[np.int64]) -> Tensor:
    """The inputs of some training images as one batch on the trainer's device."""
    collate = trainer.collate_fn or default_collate
    data, _ = trainer.data_and_label_getter(collate([trainer.dataset[int(row)] for row in rows]))
    inputs: Tensor = c_f.to_device(data, device=trainer.data_device, dtype=trainer.dtype)
    return inputs
