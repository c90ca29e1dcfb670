"""Batches of features for training and evaluation. There is nothing to crop, so a batch costs one copy of its rows."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from protocols.features.packed_features import LabelledFeatures
from protocols.images.batch_source import Rows, has_room, page_locked

MEMORY_BYTES = 512 * 2**20
"""Largest size in bytes of features that a training keeps in memory as float32; larger ones are read for each batch."""


class FeatureSource:
    """Features of training images, float32 (batch, c) on the device. It has the interface of `BatchSource`.

    Args:
        features: The features of the training images.
        device: The device of the batches.
    """

    def __init__(self, features: LabelledFeatures, device: torch.device) -> None:
        self._features, self._device = features, device
        self._kept = kept_rows(features, device)

    def training_batch(self, rows: Rows, generator: torch.Generator) -> Tensor:
        """Return one batch.

        Args:
            rows: Positions of the images, (batch,).
            generator: Not used, since features have no random crops.

        Returns:
            The features, float32 (batch, c).
        """
        if self._kept is None:
            return page_locked(torch.from_numpy(self._features.take(rows)), self._device).to(
                self._device, non_blocking=True
            )
        positions = page_locked(torch.from_numpy(rows), self._device)
        return self._kept.index_select(0, positions.to(self._device, non_blocking=True))

    def training_batches(self, rows: Iterable[Rows], generator: torch.Generator) -> Iterator[tuple[Rows, Tensor]]:
        """Yield the positions and the features of each batch; the arguments are those of `training_batch`."""
        for part in rows:
            yield part, self.training_batch(part, generator)


class EvaluationFeatures:
    """Features in their order, float32 (batch, c) on the device. It has the interface of `EvaluationCrops`.

    Args:
        features: The features.
        device: The device of the batches.
        keep: Whether to keep the features for later passes, if there is room.
    """

    def __init__(self, features: LabelledFeatures, device: torch.device, *, keep: bool = True) -> None:
        self._features, self._device = features, device
        self._kept = kept_rows(features, device) if keep else None

    def batches(self) -> Iterator[Tensor]:
        """Yield all features in their order: at once if they are kept, and else in parts."""
        if self._kept is not None:
            yield self._kept
            return
        part = max(1, MEMORY_BYTES // 8 // (4 * self._features.features.width))
        for first in range(0, len(self._features), part):
            rows = np.arange(first, min(first + part, len(self._features)))
            yield torch.from_numpy(self._features.take(rows)).to(self._device)


def kept_rows(features: LabelledFeatures, device: torch.device) -> Tensor | None:
    """Return all rows, float32 (n, c) on the device; None if they need more than `MEMORY_BYTES` or there is no room."""
    fits = features.n_bytes <= MEMORY_BYTES
    if not fits or (device.type == "cuda" and not has_room(device, features.n_bytes, MEMORY_BYTES)):
        return None
    return torch.from_numpy(features.take(np.arange(len(features)))).to(device)
