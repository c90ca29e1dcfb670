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

    Nothing hangs on model or loss, so they can be copied, pickled and saved at any time. The trainer calls the hooks
    while it trains; at the end of every `trainer.train` it is as before.
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
        self._trainer, self._validate = trainer, validate
        self.validated()
        _TrainWithHooks.of(trainer).add(self)

    def detach(self) -> None:
        """Let the trainer train without these hooks from its next `train` on."""
        _TrainWithHooks.of(self._trainer).remove(self)

    def validated(self) -> None:
        """Validate, and pass the scores on."""
        if self._validate is not None:
            self.evaluated(self._validate(self._trainer))

    def gradients_passed(self) -> None:
        """What the trainer calls among its gradient clippers: a skipped step loses its gradients."""
        if not self.gradients_ready():
            for optimizer in self._trainer.optimizers.values():
                optimizer.zero_grad(set_to_none=True)


class _TrainWithHooks:
    """Stands in for the `train` of a trainer to which losses are attached: installs their hooks and removes them."""

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.train = trainer, trainer.train
        self.schedules: list[AttachedSchedule] = []

    @classmethod
    def of(cls, trainer: Any) -> "_TrainWithHooks":
        return trainer.train if isinstance(trainer.train, cls) else cls(trainer)

    def add(self, schedule: AttachedSchedule) -> None:
        """A loss that is attached again has the new schedule only."""
        self.schedules = [other for other in self.schedules if other.loss is not schedule.loss] + [schedule]
        self.trainer.train = self

    def remove(self, schedule: AttachedSchedule) -> None:
        self.schedules = [other for other in self.schedules if other is not schedule]
        if not self.schedules:
            self.trainer.train = self.train

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trainer, attributes = self.trainer, vars(self.trainer)
        clippers = {f"hooks of loss {n}": schedule.gradients_passed for n, schedule in enumerate(self.schedules)}
        hooks = {
            "calculate_loss": partial(self._calculate_loss, trainer.calculate_loss),
            "gradient_clippers": {**clippers, **(trainer.gradient_clippers or {})},
            "end_of_epoch_hook": partial(self._end_of_epoch, trainer.end_of_epoch_hook),
        }
        before = {name: attributes[name] for name in hooks if name in attributes}
        attributes.update(hooks)
        try:
            return self.train(*args, **kwargs)
        finally:
            for name in hooks:
                del attributes[name]
            attributes.update(before)
            for schedule in self.schedules:
                schedule.release()

    def _calculate_loss(self, calculate_loss: Callable[[Any], None], batch: Any) -> None:
        for schedule in self.schedules:
            schedule.start_step()
        calculate_loss(batch)

    def _end_of_epoch(self, hook: Callable[[Any], Any], trainer: Any) -> Any:
        for schedule in self.schedules:
            schedule.validated()
        return hook(trainer)


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
        The schedule that calls the hooks. `schedule.detach()` ends that for good.

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
