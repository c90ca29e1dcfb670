"""What trainings and evaluations read: images, or features in their place.

Features are rows of one file in the cache, which all processes map into their memory. None has a copy of the whole,
except of the rows of its own training if they are few.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.images.batch_source import BatchSource, EvaluationCrops, has_room
from protocols.images.device_crops import Rows, to_device
from protocols.images.packed_images import LabelledImages, Selection
from results.spec.conditions import ImageSettings

FEATURES_FILE = "features.npy"

MEMORY_BYTES = 512 * 2**20
"""Largest size in bytes of features that a training keeps in memory as float32; larger ones are read for each batch."""


@cache
def _mapped(path: Path) -> NDArray[Any]:
    rows: NDArray[Any] = np.load(path, mmap_mode="r")
    return rows


@dataclass(frozen=True)
class LabelledFeatures(Selection):
    """A selection of the rows of a file of features. Only the path is pickled; a worker opens the same file.

    Attributes:
        path: An .npy file in the cache, float16 or float32 (n, c). It is never written again.
    """

    path: Path

    @property
    def width(self) -> int:
        """Number of features c of a row."""
        return int(_mapped(self.path).shape[1])

    @property
    def n_bytes(self) -> int:
        """Size of the rows as float32, in bytes."""
        return 4 * len(self.rows) * self.width

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Copy the features at positions (k,) of this selection; returns float32 (k, c)."""
        return np.asarray(_mapped(self.path)[self.rows[positions]], dtype=np.float32)


class FeatureSource:
    """Features of images, float32 on the device, with the interfaces of `BatchSource` and of `EvaluationCrops`.

    All rows are kept on the device, unless they need more than `MEMORY_BYTES` or there is no room.
    """

    def __init__(self, features: LabelledFeatures, device: torch.device, *, keep: bool = True) -> None:
        self._features, self._device = features, device
        self._kept: Tensor | None = None
        has_space = device.type != "cuda" or has_room(device, features.n_bytes, MEMORY_BYTES)
        if keep and features.n_bytes <= MEMORY_BYTES and has_space:
            self._kept = torch.from_numpy(features.take(np.arange(len(features)))).to(device)

    def training_batch(self, rows: Rows, generator: torch.Generator) -> Tensor:
        """Return the features, float32 (batch, c), of the images at positions (batch,)."""
        if self._kept is None:
            return to_device(self._features.take(rows), self._device)
        return self._kept.index_select(0, to_device(rows, self._device))

    def batches(self) -> Iterator[Tensor]:
        """Yield all features in their order: at once if they are kept, and else in parts."""
        if self._kept is not None:
            yield self._kept
            return
        part = max(1, MEMORY_BYTES // 8 // (4 * self._features.width))
        for first in range(0, len(self._features), part):
            rows = np.arange(first, min(first + part, len(self._features)))
            yield torch.from_numpy(self._features.take(rows)).to(self._device)


Samples = LabelledImages | LabelledFeatures
"""A selection of a dataset's images, or of their features, with classes. It gives no access to others."""

TrainingBatches = BatchSource | FeatureSource
EvaluationBatches = EvaluationCrops | FeatureSource


def training_batches_of(samples: Samples, settings: ImageSettings, device: torch.device) -> TrainingBatches:
    """Return the source of a training's batches: random crops of images, or rows of features."""
    if isinstance(samples, LabelledFeatures):
        return FeatureSource(samples, device)
    return BatchSource(samples, settings, device)


def evaluation_batches_of(
    samples: Samples, settings: ImageSettings, device: torch.device, *, keep: bool = True
) -> EvaluationBatches:
    """Return the batches of an evaluation, in the order of the samples: centre crops of images, or rows of features."""
    if isinstance(samples, LabelledFeatures):
        return FeatureSource(samples, device, keep=keep)
    return EvaluationCrops(samples, settings, device, keep=keep)
