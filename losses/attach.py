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


class AttachedSchedule(Schedule):
    """The schedule of a loss in a trainer, made by `attach`, which has its arguments.

    It stands in for the trainer's `train`. Nothing hangs on model or loss, so they can be copied, pickled and saved at
    any time; at the end of every `trainer.train` the trainer is as before.
    """

    def __init__(
        self,
        loss: TrainingPlugin,
        trainer: Any,
        labels: NDArray[np.int64] | Sequence[int] | Tensor | None,
        validate: Callable[[Any], Mapping[str, float]] | None,
        seed: int,
    ) -> None:
        trunk = trainer.models["trunk"]
        super().__init__(
            loss,
            nn.Sequential(trunk, trainer.models["embedder"]),
            c_f.process_label(_labels(trainer, labels), trainer.label_hierarchy_level, trainer.label_mapper),
            trainer.batch_size,
            trunk=trunk,
            images=partial(_inputs, trainer),
            steps_per_epoch=trainer.iterations_per_epoch,
            seed=seed,
        )
        self.trainer, self.validate = trainer, validate
        self._validate()
        link = trainer
        while isinstance(link.train, AttachedSchedule):
            if link.train.loss is loss:  # A loss that is attached again has the new schedule only.
                link.train = link.train.train
            else:
                link = link.train
        self.train: Callable[..., Any] = trainer.train
        trainer.train = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Train with the hooks of the loss."""
        trainer = self.trainer
        before = trainer.calculate_loss, trainer.gradient_clippers, trainer.end_of_epoch_hook
        calculate_loss, clippers, end_of_epoch = before

        def step(batch: Any) -> None:
            self.start_step()
            calculate_loss(batch)

        def ended(trainer: Any) -> Any:
            self._validate()
            return end_of_epoch(trainer)

        trainer.calculate_loss, trainer.end_of_epoch_hook = step, ended
        trainer.gradient_clippers = {f"hooks of loss {id(self.loss)}": self._after_backward, **(clippers or {})}
        try:
            return self.train(*args, **kwargs)
        finally:
            trainer.calculate_loss, trainer.gradient_clippers, trainer.end_of_epoch_hook = before
            self.release()

    def _validate(self) -> None:
        if self.validate is not None:
            self.evaluated(self.validate(self.trainer))

    def _after_backward(self) -> None:
        """Among the trainer's gradient clippers: a skipped step loses its gradients."""
        if not self.gradients_ready():
            for optimizer in self.trainer.optimizers.values():
                optimizer.zero_grad(set_to_none=True)


def attach(
    loss: TrainingPlugin,
    trainer: Any,
    *,
    labels: NDArray[np.int64] | Sequence[int] | Tensor | None = None,
    validate: Callable[[Any], Mapping[str, float]] | None = None,
    seed: int = 0,
) -> AttachedSchedule:
    """Call the hooks of a loss in a trainer of pytorch-metric-learning (PML).

    Call it after the trainer is made, with model and loss on their device, and before `trainer.train`. Build the
    optimizer of the loss from `loss.param_groups(lr, weight_decay)`.

    A step starts before the trainer computes its loss, `on_gradients` is the first of the trainer's gradient clippers,
    and validation runs in its hook at the end of an epoch, before the one that it had. A step that the loss skips gets
    no gradients, which torch's optimizers leave out.

    Args:
        loss: the loss with hooks; it may be part of the trainer's loss function. If it is attached to this trainer
            already, the new schedule takes the place of the old one.
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
    return AttachedSchedule(loss, trainer, labels, validate, seed)


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
