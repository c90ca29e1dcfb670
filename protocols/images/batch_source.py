"""Where a training's crops come from, by `ImageSettings.augmentation` and device; all ways give the same pixels.

`faithful`: Pillow resizes each crop on the host. `device`: a batch is resized at once where the network trains, from
training images that lie there if there is room, else from boxes sent batch by batch. On a GPU whatever the host does
runs ahead in threads, into page-locked memory, so that the copy does not wait. On a CPU `device` works and is several
times slower than `faithful`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.images.crops import Cut, cut_crops, random_cuts
from protocols.images.device_crops import Windows, resized_windows
from protocols.images.packed_images import LabelledImages
from protocols.images.prefetch import done_ahead
from results.training_spec import ImageSettings

RESIDENT_BYTES = 8 * 2**30
"""Training images of up to this size are kept on a GPU, if they take at most a quarter of what is free there."""

Rows = NDArray[np.int64]
OnDevice = Callable[[], Tensor]
"""The rest of a batch's making, once the host's part is done: crops on the device."""


class BatchSource:
    """Random resized crops of `images`, uint8 (batch, channels, crop, crop) on `device`.

    The generator given decides every crop, and nothing else does: `augmentation`, device and threads do not.
    resident: whether the pixels lie on the device, for `device` augmentation; None decides by the room there.
    threads: how many batches are made ahead; None takes up to four on a GPU and none on the CPU, which trains itself.
    """

    def __init__(
        self,
        images: LabelledImages,
        settings: ImageSettings,
        device: torch.device,
        *,
        resident: bool | None = None,
        threads: int | None = None,
    ) -> None:
        self._images, self._settings = images, settings
        self._threads = host_threads(device) if threads is None else threads
        self._make: Callable[[Rows, Sequence[Cut]], OnDevice]
        if settings.augmentation == "faithful":
            self._make = _PillowCrops(images, settings.crop, device)
        elif has_room(device, images.n_bytes, RESIDENT_BYTES) if resident is None else resident:
            self._make = _ResidentImages(images, settings.crop, device)
            # What is left to the host is next to nothing.
            self._threads = 0
        else:
            self._make = _SentBoxes(images, settings.crop, device)

    def training_batch(self, rows: Rows, generator: torch.Generator) -> Tensor:
        """Crops of these rows, made now."""
        return self._make(rows, random_cuts(self._images, rows, self._settings, generator))()

    def training_batches(self, rows: Iterable[Rows], generator: torch.Generator) -> Iterator[tuple[Rows, Tensor]]:
        """Rows and crops of one batch after another, the next ones made meanwhile.

        `rows` and `generator` run ahead of what is handed out, so neither may be drawn from elsewhere.
        """
        drawn = ((part, random_cuts(self._images, part, self._settings, generator)) for part in rows)
        for part, on_device in done_ahead(lambda batch: (batch[0], self._make(*batch)), drawn, self._threads):
            yield part, on_device()


class _PillowCrops:
    """Crops by Pillow on the host."""

    def __init__(self, images: LabelledImages, side: int, device: torch.device) -> None:
        self.images, self.side, self.device = images, side, device

    def __call__(self, rows: Rows, cuts: Sequence[Cut]) -> OnDevice:
        crops = page_locked(cut_crops(self.images, rows, cuts, self.side), self.device)
        return lambda: crops.to(self.device, non_blocking=True)


class _SentBoxes:
    """The boxes' pixels are sent and resized on the device."""

    def __init__(self, images: LabelledImages, side: int, device: torch.device) -> None:
        self.images, self.side, self.device = images, side, device

    def __call__(self, rows: Rows, cuts: Sequence[Cut]) -> OnDevice:
        boxes = []
        for row, cut in zip(rows, cuts, strict=True):
            top, left, height, width = cut.box
            boxes.append(self.images.image(int(row))[top : top + height, left : left + width].reshape(-1))
        pixels = page_locked(torch.from_numpy(np.concatenate(boxes)), self.device)
        channels = self.images.images.channels
        starts = np.cumsum([0, *(len(box) for box in boxes)])[:-1]
        windows = _windows(starts, np.asarray([cut.box[3] for cut in cuts]), cuts, channels)
        return lambda: resized_windows(pixels.to(self.device, non_blocking=True), windows, channels, self.side)


class _ResidentImages:
    """All images lie on the device, behind one another, from the first batch on."""

    def __init__(self, images: LabelledImages, side: int, device: torch.device) -> None:
        self.channels, self.side = images.images.channels, side
        sizes = np.asarray([images.image(i).size for i in range(len(images))])
        self.widths = np.asarray([images.image(i).shape[1] for i in range(len(images))])
        self.starts = np.cumsum(sizes) - sizes
        self.pixels = torch.empty(int(sizes.sum()), dtype=torch.uint8, device=device)
        for i, (start, size) in enumerate(zip(self.starts, sizes, strict=True)):
            self.pixels[start : start + size] = torch.from_numpy(images.image(i).reshape(-1).copy())

    def __call__(self, rows: Rows, cuts: Sequence[Cut]) -> OnDevice:
        tops, lefts = np.asarray([cut.box[:2] for cut in cuts], dtype=np.int64).T
        starts = self.starts[rows] + (tops * self.widths[rows] + lefts) * self.channels
        windows = _windows(starts, self.widths[rows], cuts, self.channels)
        return lambda: resized_windows(self.pixels, windows, self.channels, self.side)


def _windows(starts: Rows, image_widths: Rows, cuts: Sequence[Cut], channels: int) -> Windows:
    heights, widths = np.asarray([cut.box[2:] for cut in cuts], dtype=np.int64).T
    flips = np.asarray([cut.flip for cut in cuts])
    return Windows(starts, image_widths * channels, np.full(len(cuts), channels), heights, widths, flips)


def host_threads(device: torch.device) -> int:
    """How many batches the host makes ahead: up to four for a GPU, none for a CPU, which is busy training."""
    return min(4, os.cpu_count() or 1) if device.type == "cuda" else 0


def has_room(device: torch.device, n_bytes: int, most: int) -> bool:
    """Whether a GPU can keep so much beside a training: no more than `most`, and a quarter of what is free there."""
    return device.type == "cuda" and n_bytes <= min(most, torch.cuda.mem_get_info(device)[0] // 4)


def page_locked(pixels: Tensor, device: torch.device) -> Tensor:
    """Memory that a GPU copies from without making the host wait; unchanged for the CPU."""
    return pixels.pin_memory() if device.type == "cuda" else pixels
