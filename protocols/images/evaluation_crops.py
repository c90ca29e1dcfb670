"""Centre crops made once and used at every validation, as far as there is memory for them."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from protocols.images.batch_source import has_room, host_threads, page_locked
from protocols.images.crops import evaluation_batch
from protocols.images.packed_images import LabelledImages
from protocols.images.prefetch import done_ahead
from results.training_spec import ImageSettings

BATCH = 64
"""Images embedded at once."""
HOST_BYTES = 2**30
"""Crops of up to this size are kept in memory: all of CUB's test classes, a part of SOP's. More is made anew."""
DEVICE_BYTES = 4 * 2**30
"""Crops of up to this size are kept on a GPU, if they take at most a quarter of what is free there."""


class EvaluationCrops:
    """Centre crops of `images` in batches, uint8 (batch, channels, crop, crop) on `device`.

    The first pass makes them. Later ones find them where they were kept, on the device or else in memory; where there
    is no room, and without `keep`, they are made again. They are the same every time.
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
        self._kept: list[Tensor] | None = None

    def batches(self) -> Iterator[Tensor]:
        """All crops in the images' order."""
        if self._kept is not None:
            for crops in self._kept:
                yield crops.to(self.device, non_blocking=True)
            return
        kept = []
        for crops in done_ahead(self._made, range(0, len(self.images), self.batch), host_threads(self.device)):
            on_device = crops.to(self.device, non_blocking=True)
            if self._keeps:
                kept.append(on_device if self._on_device else crops)
            yield on_device
        self._kept = kept if self._keeps else None

    def _made(self, first: int) -> Tensor:
        rows = np.arange(first, min(first + self.batch, len(self.images)))
        return page_locked(evaluation_batch(self.images, rows, self.settings), self.device)
