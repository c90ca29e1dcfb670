"""Tries a method on some batches of random embeddings, before anything is trained, to see whether its code takes them.

Constructors, optimizer, hooks, forward and backward are those of the training; only the network is a small linear layer
on random numbers. Labels, sizes and the composition of the batches are the training's own.
"""

import warnings
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from losses.plugin import Clock, TrainingContext
from losses.sample_pool import SamplePool
from protocols.training.batches import batches
from protocols.training.build_method import build_method, refusals
from protocols.training.optimizer import build_optimizer
from protocols.training.torch_state import isolated_random_numbers
from results.spec.training_spec import FoldSpec, MethodSpec, TrainingSettings
from results.values import derive_seed

LARGEST_BATCH = 256
"""Larger batches are not tried, since some losses need memory in proportion to the cube of the batch."""

_WIDTH = 8
_LOOKED_AT = 500
"""Batches that are looked at to find one with unequal classes."""


def batches_to_try(
    targets: NDArray[np.int64], settings: TrainingSettings, method: MethodSpec
) -> list[NDArray[np.int64]]:
    """Return a batch, as positions of images, and one with unequal classes if the training has such batches.

    Where two passes over the classes meet in a batch, some classes can be in it twice.

    Args:
        targets: Class of every training image as 0..C-1, (n,).

    Raises:
        ValueError: There is no batch of this size; see `check_batches`.
    """
    seed, m = derive_seed("rehearsal"), method.samples_per_class
    stream = batches(targets, settings.batch_size, m, seed, whole_passes=method.whole_passes)
    if settings.batch_size > LARGEST_BATCH:
        return []
    length = min(_LOOKED_AT, settings.max_epochs * settings.steps_per_epoch(len(targets)))
    first = next(stream)
    if not m or method.whole_passes:
        return [first]
    unequal = (rows for rows in islice(stream, length) if len(set(np.unique_counts(targets[rows]).counts)) > 1)
    return [first, *islice(unequal, 1)]


def rehearse(
    spec: FoldSpec, targets: NDArray[np.int64], rows: Sequence[NDArray[np.int64]], gradients: bool = True
) -> None:
    """Build the method of a training and compute its loss and gradients on some batches.

    Args:
        spec: The training.
        targets: Class of every training image as 0..C-1, (n,).
        rows: Positions of the images of each batch.
        gradients: Whether to compute gradients too, which takes most of the time.

    Raises:
        RefusedError: The method's own code does not take the setting, the sizes or a batch.
    """
    with isolated_random_numbers("cpu"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The training warns too.
        _Rehearsal(spec, targets).run(rows, gradients=gradients)


class _Rehearsal:
    def __init__(self, spec: FoldSpec, targets: NDArray[np.int64]) -> None:
        assert spec.method.loss is not None
        assert spec.embedding_size is not None
        torch.manual_seed(0)
        self.targets, self.training, self.loss_name = targets, spec.training, spec.method.loss.name
        self.network = nn.Linear(_WIDTH, spec.embedding_size)
        classes = int(targets.max()) + 1
        self.method = build_method(spec.method, classes, spec.embedding_size, len(targets), spec.training.batch_size)
        # The small network has no layers of a trunk; `check_training` looks at those of the real one.
        optimizer = spec.training.optimizer.model_copy(update={"layer_decay": None})
        with refusals(optimizer.name):
            build_optimizer(optimizer, self.network, self.method, spec.method)
        pool = SamplePool(self.network, lambda rows: torch.randn(len(rows), _WIDTH), targets, 0)
        context = TrainingContext(list(self.network.parameters()), classes, torch.Generator().manual_seed(0), pool)
        with refusals(self.loss_name):
            self.method.plugin.bind(context)

    def run(self, rows: Sequence[NDArray[np.int64]], *, gradients: bool) -> None:
        plugin: Any = self.method.plugin
        with refusals(self.loss_name):
            self.method.loss.train()
            plugin.on_epoch_start(self._clock(0))
            for step, batch in enumerate(rows):
                plugin.on_step_start(self._clock(step))
                embeddings = self.network(torch.randn(len(batch), _WIDTH))
                loss = self.method(embeddings, torch.from_numpy(self.targets[batch]))
                if gradients:
                    loss.backward()
                    plugin.on_gradients(self._clock(step))

    def _clock(self, step: int) -> Clock:
        return Clock(0, step, self.training.steps_per_epoch(len(self.targets)), 0)
