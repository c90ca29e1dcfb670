"""Centre crops that are made once and kept in memory for later validations, if there is room."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from protocols.images.batch_source import has_room, host_threads, page_locked
from protocols.images.crops import evaluation_batch
from protocols.images.packed_images import LabelledImages
from protocols.images.prefetch import done_ahead
from results.spec.training_spec import ImageSettings

BATCH = 64
"""Number of images that are embedded at once."""
HOST_BYTES = 2**30
"""Largest size in bytes of crops kept in the host's memory; larger sets (SOP's test classes) are made again."""
DEVICE_BYTES = 4 * 2**30
"""Largest size in bytes of crops kept on a GPU; a quarter of the free memory is a second limit."""


class EvaluationCrops:
    """Centre crops of images in batches, uint8 (batch, channels, crop, crop) on the device.

    The first pass makes the crops and keeps them on the device, or else in the host's memory. Without room, every pass
    makes them again. All passes give the same crops.

    Args:
        images: The images.
        settings: Size of the crops.
        device: The device of the crops.
        keep: Whether to keep the crops for later passes.
        batch: Number of images per batch.
    """

    def __init__(
        self,
        images: LabelledImages,
        settings: ImageSettings,
        device: torch.device,
        *,
        keep: bool = True,
        batch: int = BATCH,
    ) -> None:
        self.images, self.settings, self.device, self.batch = images, settings, device, batch
        n_bytes = len(images) * images.images.channels * settings.crop**2
        self._on_device = keep and has_room(device, n_bytes, DEVICE_BYTES)
        self._keeps = self._on_device or (keep and n_bytes <= HOST_BYTES)
        self._crops: list[Tensor] | None = None

    def batches(self) -> Iterator[Tensor]:
        """Yield all crops in the order of the images."""
        if self._crops is not None:
            for crops in self._crops:
                yield crops.to(self.device, non_blocking=True)
            return
        all_crops = []
        for crops in done_ahead(self._made, range(0, len(self.images), self.batch), host_threads(self.device)):
            on_device = crops.to(self.device, non_blocking=True)
            if self._keeps:
                all_crops.append(on_device if self._on_device else crops)
            yield on_device
        self._crops = all_crops if self._keeps else None

    def _made(self, first: int) -> Tensor:
        rows = np.arange(first, min(first + self.batch, len(self.images)))
        return page_locked(evaluation_batch(self.images, rows, self.settings), self.device)
