"""The crops of trainings and evaluations in batches.

Those of a training are made as `ImageSettings.augmentation` and the device decide; all ways give the same pixels.

`faithful`: Pillow resizes each crop on the host.
`device`: the network's device resizes a whole batch. The images are kept on the device if there is room; otherwise the
boxes of each batch are sent there. With a GPU, the work of the host is done in advance by threads. It is written to
page-locked memory, so that the copy does not wait. On a CPU, `device` is several times slower than `faithful`.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.images.crops import Cuts, cut_crops, evaluation_batch, random_cuts
from protocols.images.device_crops import Rows, Windows, resized_windows, sent
from protocols.images.packed_images import LabelledImages
from results.spec.conditions import ImageSettings

RESIDENT_BYTES = 8 * 2**30
"""Largest size in bytes of training images that are kept on a GPU; a quarter of the free memory is a second limit."""

OnDevice = Callable[[], Tensor]
"""The second part of making a batch, after the host's part. It returns the crops on the device."""

BATCH = 64
"""Number of images that are embedded at once."""
HOST_BYTES = 2**30
"""Largest size in bytes of crops kept in the host's memory; larger sets (SOP's test classes) are made again."""
DEVICE_BYTES = 4 * 2**30
"""Largest size in bytes of crops kept on a GPU; a quarter of the free memory is a second limit."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class BatchSource:
    """Random resized crops of training images, uint8 (batch, channels, crop, crop) on the device.

    Only the random generator decides the crops. Augmentation, device and threads do not change them.

    Args:
        resident: For `device` augmentation: whether to keep the images on the device. None decides by the free memory.
    """

    def __init__(
        self,
        images: LabelledImages,
        settings: ImageSettings,
        device: torch.device,
        *,
        resident: bool | None = None,
    ) -> None:
        self._images, self._settings = images, settings
        self._threads = host_threads(device)
        self._make: Callable[[Rows, Cuts], OnDevice]
        if settings.augmentation == "faithful":
            self._make = partial(_pillow_crops, images, settings.crop, device)
        elif has_room(device, images.n_bytes, RESIDENT_BYTES) if resident is None else resident:
            self._make = _ResidentImages(images, settings.crop, device)
            # The host has almost nothing to do.
            self._threads = 0
        else:
            self._make = partial(_crops_of_sent_boxes, images, settings.crop, device)

    def training_batch(self, rows: Rows, generator: torch.Generator) -> Tensor:
        """Make one batch.

        Args:
            rows: Positions of the images, (batch,).

        Returns:
            The crops, uint8 (batch, channels, crop, crop).
        """
        return self._make(rows, random_cuts(self._images, rows, self._settings, generator))()

    def training_batches(self, rows: Iterable[Rows], generator: torch.Generator) -> Iterator[tuple[Rows, Tensor]]:
        """Make batches in order; later batches are made in advance, so nothing else may use the generator."""
        batches = ((part, random_cuts(self._images, part, self._settings, generator)) for part in rows)
        for part, on_device in done_ahead(lambda batch: (batch[0], self._make(*batch)), batches, self._threads):
            yield part, on_device()


def _pillow_crops(images: LabelledImages, side: int, device: torch.device, rows: Rows, cuts: Cuts) -> OnDevice:
    crops = page_locked(cut_crops(images, rows, cuts, side), device)
    return lambda: crops.to(device, non_blocking=True)


def _crops_of_sent_boxes(images: LabelledImages, side: int, device: torch.device, rows: Rows, cuts: Cuts) -> OnDevice:
    boxes = []
    for row, (top, left, height, width) in zip(rows.tolist(), cuts.boxes.tolist(), strict=True):
        boxes.append(images.image(row)[top : top + height, left : left + width].reshape(-1))
    pixels = page_locked(torch.from_numpy(np.concatenate(boxes)), device)
    channels = images.images.channels
    starts = np.cumsum([0, *(len(box) for box in boxes)])[:-1]
    windows = _windows(starts, cuts.boxes[:, 3], cuts, channels)
    return lambda: resized_windows(pixels.to(device, non_blocking=True), windows, channels, side)


class _ResidentImages:
    """Crops that the device resizes from images that it keeps, one after another in one tensor."""

    def __init__(self, images: LabelledImages, side: int, device: torch.device) -> None:
        self.channels, self.side = images.images.channels, side
        shapes = np.asarray(images.shapes_of(np.arange(len(images))), dtype=np.int64)
        sizes, self.widths = shapes.prod(axis=1), shapes[:, 1]
        self.starts = np.cumsum(sizes) - sizes
        self.pixels = torch.empty(int(sizes.sum()), dtype=torch.uint8, device=device)
        for i, (start, size) in enumerate(zip(self.starts, sizes, strict=True)):
            self.pixels[start : start + size] = torch.from_numpy(images.image(i).reshape(-1).copy())

    def __call__(self, rows: Rows, cuts: Cuts) -> OnDevice:
        tops, lefts = cuts.boxes[:, :2].T
        starts = self.starts[rows] + (tops * self.widths[rows] + lefts) * self.channels
        windows = _windows(starts, self.widths[rows], cuts, self.channels)
        return lambda: resized_windows(self.pixels, windows, self.channels, self.side)


def _windows(starts: Rows, image_widths: Rows, cuts: Cuts, channels: int) -> Windows:
    heights, widths = cuts.boxes[:, 2:].T
    return Windows(starts, image_widths * channels, heights, widths, cuts.flips)


def host_threads(device: torch.device) -> int:
    """Return the number of batches that the host makes in advance: up to four for a GPU, none for a CPU."""
    return min(4, os.cpu_count() or 1) if device.type == "cuda" else 0


_sharing = 1


def share_gpu(trainings: int) -> None:
    """Tell this process how many trainings run on its GPU at the same time. They change no number, only `has_room`."""
    global _sharing
    _sharing = trainings


def has_room(device: torch.device, n_bytes: int, most: int) -> bool:
    """Tell whether a GPU can keep data beside a training; always False for a CPU.

    Trainings that share a GPU (`share_gpu`) start together and see the same free memory, so each may take its part.
    """
    return device.type == "cuda" and n_bytes <= min(most, torch.cuda.mem_get_info(device)[0] // 4) // _sharing


def page_locked(pixels: Tensor, device: torch.device) -> Tensor:
    """Move pixels to memory that a GPU copies from while the host works on; for a CPU, return them unchanged."""
    return pixels.pin_memory() if device.type == "cuda" else pixels


def labelled_batches(
    batches: Iterable[tuple[Rows, Tensor]], targets: NDArray[np.int64], device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """Add the labels to batches of crops, without a wait for the device.

    Args:
        targets: Class of every training image, (n,).

    Yields:
        Crops and classes (batch,) of the next batch, on the device.
    """
    pairs = ((crops, sent(targets[rows], device)) for rows, crops in batches)
    yield from _one_ahead(pairs, device) if device.type == "cuda" else pairs


def _one_ahead(pairs: Iterator[tuple[Tensor, Tensor]], device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Make the next pair on a stream of its own, so that its copies run beside the work on the present pair."""
    stream = torch.cuda.Stream(device)

    def made_on_stream() -> tuple[Tensor, Tensor] | None:
        with torch.cuda.stream(stream):
            return next(pairs, None)

    following = made_on_stream()
    while following is not None:
        working = torch.cuda.current_stream(device)
        working.wait_stream(stream)
        pair = following
        for tensor in pair:
            # The memory was taken on the copying stream; it must not be given out again while this stream reads it.
            tensor.record_stream(working)
        following = made_on_stream()
        yield pair


class EvaluationCrops:
    """Centre crops of images in batches, uint8 (batch, channels, crop, crop) on the device.

    The first pass makes the crops and keeps them on the device, or else in the host's memory. Without room, every pass
    makes them again. All passes give the same crops.
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


def done_ahead(work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Iterator[_Result]:
    """Yield `work(item)` for every item in order, with later items computed in advance.

    The items are drawn one after another in the caller's thread. Random numbers that they draw are therefore the same
    for every number of threads. An error in `work` is raised when the result of its item is due.
    """
    if threads == 0:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[_Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
