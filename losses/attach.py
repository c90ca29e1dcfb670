"""Connects a loss with hooks to a trainer of pytorch-metric-learning."""

from collections.abc import Callable, Mapping, Sequence
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

    Call it after the trainer is made, with model and loss on their device, and before `trainer.train`. Build the
    optimizer of the loss from `loss.param_groups(lr, weight_decay)`.

    The hooks before a step hang on the forward pass of the trunk, `on_gradients` is the first of the trainer's gradient
    clippers, and validation runs in its hook at the end of an epoch, before the one that it had. A step that the loss
    skips gets no gradients, which torch's optimizers leave out.

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
        ValueError: if the labels are not known, or the loss needs `validate`.
    """
    if loss.needs.validation and validate is None:
        raise ValueError(f"{type(loss).__name__} acts on validation scores; give validate=")
    trunk = trainer.models["trunk"]
    schedule = Schedule(
        loss,
        nn.Sequential(trunk, trainer.models["embedder"]),
        c_f.process_label(_labels(trainer, labels), trainer.label_hierarchy_level, trainer.label_mapper),
        trainer.batch_size,
        trunk=trunk,
        images=lambda rows: _inputs(trainer, rows),
        steps_per_epoch=trainer.iterations_per_epoch,
        seed=seed,
    )
    assert isinstance(loss, nn.Module)
    for module in (trunk, loss):
        module.register_forward_pre_hook(lambda module, _: _start_step(module, schedule))
    trainer.gradient_clippers = {
        "loss_hooks": lambda: _end_step(trainer, schedule),
        **(trainer.gradient_clippers or {}),
    }
    if validate is not None:
        _attach_validation(trainer, schedule, validate)
    return schedule


def _labels(trainer: Any, labels: Any) -> Tensor:
    """The labels as given, or those of the trainer's dataset."""
    if labels is None:
        dataset = trainer.dataset
        tensors = getattr(dataset, "tensors", (None, None))
        known = (getattr(dataset, "targets", None), getattr(dataset, "labels", None), tensors[1])
        labels = next((values for values in known if values is not None), None)
    if labels is None:
        raise ValueError("the dataset has neither targets nor labels; give labels=, the class of every training image")
    return torch.as_tensor(labels)


def _inputs(trainer: Any, rows: NDArray[np.int64]) -> Tensor:
    """The inputs of some training images as one batch on the trainer's device."""
    collate = trainer.collate_fn or default_collate
    data, _ = trainer.data_and_label_getter(collate([trainer.dataset[int(row)] for row in rows]))
    inputs: Tensor = c_f.to_device(data, device=trainer.data_device, dtype=trainer.dtype)
    return inputs


def _start_step(module: nn.Module, schedule: Schedule) -> None:
    """Start a step at the first forward pass with gradients. The pass of the loss counts if the trunk is frozen."""
    if module.training and torch.is_grad_enabled():
        schedule.start_step()


def _end_step(trainer: Any, schedule: Schedule) -> None:
    if not schedule.gradients_ready():
        for optimizer in trainer.optimizers.values():
            optimizer.zero_grad(set_to_none=True)


def _attach_validation(trainer: Any, schedule: Schedule, validate: Callable[[Any], Mapping[str, float]]) -> None:
    """Validate now and at the end of every epoch, before the trainer's own hook."""
    schedule.evaluated(validate(trainer))
    inner = trainer.end_of_epoch_hook

    def end_of_epoch(trainer: Any) -> Any:
        schedule.evaluated(validate(trainer))
        return inner(trainer)

    trainer.end_of_epoch_hook = end_of_epoch
