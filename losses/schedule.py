"""Calls the hooks of a loss in a training loop that does not know them."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_metric_learning.utils import common_functions as c_f
from torch import Tensor, nn
from torch.utils.data import default_collate

from .plugin import Clock, TrainingContext, TrainingPlugin
from .sample_pool import SamplePool

CALLS = 100
"""Calls in training mode before the warning: an epoch of MLRC. A loss does not know how long a pass is."""


class HookReminder:
    """Mix-in for a loss that is not its method while nobody calls its hooks. It warns once."""

    _hook_was_called = False
    _calls_without_hooks = 0

    def _count_call(self) -> None:
        """Count a call in training mode. Warn at call number `CALLS` if no hook was called and something is missing."""
        if self._hook_was_called or self._calls_without_hooks >= CALLS:
            return
        self._calls_without_hooks += 1
        if self._calls_without_hooks == CALLS and (missing := self._missing_without_hooks()):
            name, package = type(self).__name__, __package__
            warnings.warn(
                f"{name} was called {CALLS} times in training and its hooks were not: {missing}, so this is not the "
                f"method of its paper; use {package}.attach(loss, trainer) with a trainer of pytorch-metric-learning, "
                f"or {package}.Schedule in a loop of your own",
                stacklevel=2,
            )

    def _missing_without_hooks(self) -> str | None:
        """What the loss lacks now; None if it needs no hook in its present state."""
        raise NotImplementedError


class Schedule:
    """Calls the hooks of a loss at the right moments of a plain training loop, and freezes the trunk in its warm-up.

    ::

        optimizer = Adam([{"params": model.parameters()}, *loss.param_groups(lr, weight_decay)])
        schedule = Schedule(loss, model, labels, batch_size=32)
        for images, batch_labels in batches:
            schedule.start_step()
            optimizer.zero_grad()
            loss(model(images), batch_labels).backward()
            if schedule.gradients_ready():
                optimizer.step()

    Make it after model and loss are on their device and before the first step.

    Args:
        loss: the loss with hooks.
        model: the network without the loss; it maps a batch of inputs to raw embeddings (n, d).
        labels: class of every training image as 0..C-1, (n,). Their number is the length of a pass.
        batch_size: images per step.
        trunk: the part of the model that is frozen in the warm-up; default None, which takes `model.trunk`.
        images: function that takes row numbers (n,) and returns the inputs of these training images as one batch, for
            losses that pick proxies among embeddings (`CCPLoss`); default None.
        steps_per_epoch: steps between two calls of `on_epoch_start`; default None, one pass over the images.
        warmup_epochs: passes with a frozen trunk; default None, as the loss needs.
        seed: seed of the draws for `images` and of the loss's own draws; default 0.
        generator: generator of the loss's own draws; default None, a new one from `seed`.

    Attributes:
        step: number of steps done. Set it when a training is resumed, before the next step.

    Raises:
        ValueError: for a loss that needs a warm-up without a trunk, or needs `images` that are not given.
    """

    def __init__(
        self,
        loss: TrainingPlugin,
        model: nn.Module,
        labels: NDArray[np.int64] | Sequence[int] | Tensor,
        batch_size: int,
        *,
        trunk: nn.Module | None = None,
        images: Callable[[NDArray[np.int64]], Any] | None = None,
        steps_per_epoch: int | None = None,
        warmup_epochs: int | None = None,
        seed: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        self.loss, self.step, self.batch_size = loss, 0, batch_size
        self.training_images = len(labels)
        self.steps_per_epoch = steps_per_epoch or max(1, self.training_images // batch_size)
        self.warmup_epochs = loss.needs.warmup_epochs if warmup_epochs is None else warmup_epochs
        trunk = getattr(model, "trunk", None) if trunk is None else trunk
        if self.warmup_epochs and trunk is None:
            raise ValueError(
                f"{type(loss).__name__} trains with a frozen trunk for {self.warmup_epochs} pass(es); give trunk=, the "
                "part of the model that is frozen, or warmup_epochs=0 for none"
            )
        self._trunk_parameters = [p for p in trunk.parameters() if p.requires_grad] if trunk is not None else []
        self._started = False
        parameters = [p for p in model.parameters() if p.requires_grad]
        n_classes = int(max(labels)) + 1
        pool = self._without_images if images is None else SamplePool(model, images, labels, seed)
        generator = torch.Generator().manual_seed(seed) if generator is None else generator
        loss.bind(TrainingContext(parameters, n_classes, generator, pool))

    def clock(self) -> Clock:
        """The progress of the training, as the hooks get it."""
        passes = self.step * self.batch_size // self.training_images
        return Clock(
            self.step // self.steps_per_epoch, self.step, self.steps_per_epoch, passes, passes < self.warmup_epochs
        )

    def start_step(self) -> None:
        """Call this before the forward pass of every step. A second call in the same step does nothing."""
        if self._started:
            return
        self._started = True
        clock = self.clock()
        for parameter in self._trunk_parameters:
            parameter.requires_grad_(not clock.warmup)
        if self.step % self.steps_per_epoch == 0:
            self.loss.on_epoch_start(clock)
        self.loss.on_step_start(clock)

    def gradients_ready(self) -> bool:
        """Call this after backward and before gradients are clipped. True: the optimizer may make its step."""
        may_step = self.loss.on_gradients(self.clock())
        self.step += 1
        self._started = False
        return may_step

    def evaluated(self, metrics: Mapping[str, float]) -> None:
        """Call this after every validation, and once before the first step, as the suite does.

        Args:
            metrics: scores by name; larger is better. `CCPLoss` reads `map_at_r`.
        """
        self.loss.on_evaluation(self.clock(), metrics)

    def _without_images(self, per_class: int) -> Tensor:
        name = type(self.loss).__name__
        raise ValueError(f"{name} picks its proxies among embeddings of training images; give images=")


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
    _attach_steps(loss, trunk, trainer, schedule)
    if validate is not None:
        _attach_validation(trainer, schedule, validate)
    return schedule


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


def _attach_steps(loss: Any, trunk: nn.Module, trainer: Any, schedule: Schedule) -> None:
    def start(module: nn.Module, inputs: Any) -> None:
        if module.training and torch.is_grad_enabled():
            schedule.start_step()

    def end() -> None:
        if not schedule.gradients_ready():
            for optimizer in trainer.optimizers.values():
                optimizer.zero_grad(set_to_none=True)

    # The first forward pass with gradients starts a step. While the trunk is frozen, that is the pass of the loss.
    for module in (trunk, loss):
        module.register_forward_pre_hook(start)
    trainer.gradient_clippers = {"loss_hooks": end, **(trainer.gradient_clippers or {})}


def _attach_validation(trainer: Any, schedule: Schedule, validate: Callable[[Any], Mapping[str, float]]) -> None:
    """Validate now and at the end of every epoch, before the trainer's own hook."""
    schedule.evaluated(validate(trainer))
    inner = trainer.end_of_epoch_hook

    def end_of_epoch(trainer: Any) -> Any:
        schedule.evaluated(validate(trainer))
        return inner(trainer)

    trainer.end_of_epoch_hook = end_of_epoch
