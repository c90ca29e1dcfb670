"""Calls the hooks of a loss in a training loop that does not know them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .plugin import Clock, TrainingContext, TrainingPlugin

_EMBEDDED_AT_ONCE = 64


class SamplePool:
    """Draws training images of every class and embeds them.

    Draws are without replacement inside a class until all its images were drawn; then the class is shuffled again. The
    pool has its own random numbers, so that it does not change the training's batches.

    Args:
        model: the network in training; it maps a batch of inputs to raw embeddings (n, d).
        images: function that takes row numbers (n,) and returns the inputs of these training images as one batch.
        labels: class of every training image as 0..C-1, (n,).
        seed: seed of the draws.
    """

    def __init__(
        self,
        model: nn.Module,
        images: Callable[[NDArray[np.int64]], Any],
        labels: NDArray[np.int64] | Sequence[int] | Tensor,
        seed: int,
    ) -> None:
        self.model, self.images, self.labels = model, images, np.asarray(labels)
        self._order = np.random.default_rng(seed)
        self._remaining: dict[int, list[int]] = {}

    def __call__(self, per_class: int) -> Tensor:
        """Embed `per_class` images of every class, without gradient and with the model in evaluation mode.

        Returns:
            Raw embeddings (C, per_class, d) in class order. The model's mode is restored.
        """
        n_classes = int(self.labels.max()) + 1
        rows = np.stack([self._draw(label, per_class) for label in range(n_classes)])
        was_training = self.model.training
        self.model.eval()
        with torch.no_grad():
            parts = [
                self.model(self.images(part))
                for part in np.array_split(rows.reshape(-1), max(1, rows.size // _EMBEDDED_AT_ONCE))
            ]
        self.model.train(was_training)
        return torch.cat(parts).reshape(n_classes, per_class, -1)

    def _draw(self, label: int, count: int) -> NDArray[np.int64]:
        """Draw rows of images of one class."""
        rows: list[int] = []
        remaining = self._remaining.setdefault(label, [])
        while len(rows) < count:
            if not remaining:
                remaining.extend(self._order.permutation(np.flatnonzero(self.labels == label)).tolist())
                if not remaining:
                    raise ValueError(f"class {label} has no training image; labels must be 0..C-1 without gaps")
            rows.append(remaining.pop())
        return np.asarray(rows, dtype=np.int64)


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
        schedule.release()

    Make it after model and loss are on their device and before the first step.

    Args:
        loss: the loss with hooks; one without, such as those of pytorch-metric-learning, needs none of these calls.
        model: the network without the loss; it maps a batch of inputs to raw embeddings (n, d).
        labels: class of every training image as 0..C-1, (n,). Their number is the length of a pass.
        batch_size: images per step.
        trunk: the part of the model that is frozen in the warm-up; default None, which takes `model.trunk`.
        images: function that takes row numbers (n,) and returns the inputs of these training images as one batch, for
            losses that pick proxies among embeddings (`CCPLoss`); default None.
        steps_per_epoch: steps between two calls of `on_epoch_start`; default None, one pass over the images.
        warmup_epochs: passes with a frozen trunk; default None, as the loss needs.
        seed: seed of the draws for `images` and of the loss's own draws; default 0.

    Attributes:
        step: number of steps done. Set it when a training is resumed, before the next step.

    Raises:
        ValueError: for a loss that needs a warm-up without a trunk, or needs `images` that are not given.
    """

    def __init__(
        self,
        loss: nn.Module,
        model: nn.Module,
        labels: NDArray[np.int64] | Sequence[int] | Tensor,
        batch_size: int,
        *,
        trunk: nn.Module | None = None,
        images: Callable[[NDArray[np.int64]], Any] | None = None,
        steps_per_epoch: int | None = None,
        warmup_epochs: int | None = None,
        seed: int = 0,
    ) -> None:
        labels = labels.cpu() if isinstance(labels, Tensor) else labels
        self.loss = loss if isinstance(loss, TrainingPlugin) else TrainingPlugin()
        self.step, self.batch_size, self.training_images = 0, batch_size, len(labels)
        self.steps_per_epoch = steps_per_epoch or max(1, self.training_images // batch_size)
        self.warmup_epochs = self.loss.needs.warmup_epochs if warmup_epochs is None else warmup_epochs
        trunk = getattr(model, "trunk", None) if trunk is None else trunk
        if self.warmup_epochs and trunk is None:
            raise ValueError(
                f"{type(loss).__name__} trains with a frozen trunk at first (warmup_epochs={self.warmup_epochs}); give "
                "trunk=, the part of the model that is frozen, or warmup_epochs=0 for none"
            )
        self._trunk_parameters = [p for p in trunk.parameters() if p.requires_grad] if trunk is not None else []
        self._started = False
        parameters = [p for p in model.parameters() if p.requires_grad]
        n_classes = int(max(labels)) + 1
        pool = self._without_images if images is None else SamplePool(model, images, labels, seed)
        self.loss.bind(TrainingContext(parameters, n_classes, torch.Generator().manual_seed(seed), pool))

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

    def release(self) -> None:
        """Call this at the end: a trunk that is still frozen becomes trainable again. More steps may follow."""
        self._started = False
        for parameter in self._trunk_parameters:
            parameter.requires_grad_(True)

    def _without_images(self, per_class: int) -> Tensor:
        name = type(self.loss).__name__
        raise ValueError(f"{name} picks its proxies among embeddings of training images; give images=")
