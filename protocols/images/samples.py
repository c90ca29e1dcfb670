"""What trainings and evaluations read, in batches: crops of images, or features in their place.

On a CPU, Pillow resizes the crops of a training. On a GPU, the GPU resizes a whole batch; the images are kept there if
there is room, otherwise each batch's boxes are copied to it. Both ways give the same pixels.

Features are rows of one file in the cache, which all processes map into their memory. None has a copy of the whole,
except of the rows of its own training if they are few.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from protocols.images.crops import (
    PIXELS_AT_ONCE,
    Cuts,
    Rows,
    cut_crops,
    evaluation_batch,
    largest_sides,
    numbers_of,
    picture_of,
    random_cuts,
    resized,
    resized_boxes,
    to_device,
)
from protocols.images.packed_images import LabelledImages, Selection
from results.spec.conditions import ImageSettings

FEATURES_FILE = "features.npy"

RESIDENT_BYTES = 16 * 2**30
"""Largest size in bytes of training images that are kept on a GPU; half of the free memory is a second limit."""

PICTURE_BYTES = 64 * 2**20
"""Largest size in bytes of training images that a CPU keeps as Pillow's; of others it converts each box."""

HOST_BYTES = 2**30
"""Largest size in bytes of crops kept in the host's memory; larger sets (SOP's test classes) are made again."""
DEVICE_BYTES = 4 * 2**30
"""Largest size in bytes of crops kept on a GPU; half of the free memory is a second limit."""

MEMORY_BYTES = 512 * 2**20
"""Largest size in bytes of features that a training keeps in memory as float32; larger ones are read for each batch."""


class BatchSource:
    """Random resized crops of training images, uint8 (batch, channels, crop, crop) on the device.

    Only the random generator decides the crops. The device does not change them.

    Args:
        resident: Whether a GPU keeps the images. None decides by the free memory; False sends the boxes of each batch.
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
        self._cut: Callable[[Rows, Cuts], Tensor]
        if resident is None and device.type == "cpu":
            cut = _box_of(images)
            self._cut = lambda rows, cuts: cut_crops(cut, rows, cuts, settings.crop)
        elif has_room(device, images.n_bytes, RESIDENT_BYTES) if resident is None else resident:
            self._cut = _ResidentImages(images, settings.crop, device)
        else:
            self._cut = lambda rows, cuts: _crops_of_boxes(images, settings.crop, device, rows, cuts)

    def training_batch(self, rows: Rows, generator: torch.Generator) -> Tensor:
        """Make one batch.

        Args:
            rows: Positions of the images, (batch,).

        Returns:
            The crops, uint8 (batch, channels, crop, crop).
        """
        return self._cut(rows, random_cuts(self._images, rows, self._settings, generator))


def _box_of(images: LabelledImages) -> Callable[[int, Sequence[int]], Image.Image]:
    @cache
    def picture(index: int) -> Image.Image:
        return picture_of(images.image(index))

    def of_kept(index: int, box: Sequence[int]) -> Image.Image:
        top, left, height, width = box
        return picture(index).crop((left, top, left + width, top + height))

    def of_pixels(index: int, box: Sequence[int]) -> Image.Image:
        top, left, height, width = box
        return picture_of(images.image(index)[top : top + height, left : left + width])

    return of_kept if images.n_bytes <= PICTURE_BYTES else of_pixels


def _crops_of_boxes(images: LabelledImages, side: int, device: torch.device, rows: Rows, cuts: Cuts) -> Tensor:
    boxes = []
    for row, (top, left, height, width) in zip(rows.tolist(), cuts.boxes.tolist(), strict=True):
        boxes.append(images.image(row)[top : top + height, left : left + width].reshape(-1))
    channels = images.images.channels
    starts = np.cumsum([0, *(len(box) for box in boxes)])[:-1]
    numbers = numbers_of(starts, cuts.boxes[:, 3] * channels, cuts, channels, side)
    return resized_boxes(to_device(np.concatenate(boxes), device), numbers, channels, side)


class _ResidentImages:
    """Crops that the device resizes from images that it keeps, one after another in one tensor.

    On a GPU a CUDA graph resizes them, so that the host starts one piece of work and not a hundred. All boxes then
    count as large as the largest image.
    """

    def __init__(self, images: LabelledImages, side: int, device: torch.device) -> None:
        self.channels, self.side = images.images.channels, side
        shapes = images.shapes_of(np.arange(len(images)))
        sizes, self.widths = shapes.prod(axis=1), shapes[:, 1]
        self.starts = np.cumsum(sizes) - sizes
        self.pixels = torch.empty(int(sizes.sum()), dtype=torch.uint8, device=device)
        for i, (start, size) in enumerate(zip(self.starts, sizes, strict=True)):
            self.pixels[start : start + size] = torch.from_numpy(images.image(i).reshape(-1).copy())
        self.most = largest_sides(shapes)
        self._boxes = 0
        self._graph: Any = None

    def __call__(self, rows: Rows, cuts: Cuts) -> Tensor:
        tops, lefts = cuts.boxes[:, :2].T
        starts = self.starts[rows] + (tops * self.widths[rows] + lefts) * self.channels
        numbers = numbers_of(starts, self.widths[rows] * self.channels, cuts, self.channels, self.side)
        values = len(rows) * self.most[0] * self.most[1] * self.channels
        if self.pixels.device.type != "cuda" or values > PIXELS_AT_ONCE:
            return resized_boxes(self.pixels, numbers, self.channels, self.side)
        boxes = to_device(numbers, self.pixels.device)
        if self._boxes != len(rows):
            self._boxes, self._graph = len(rows), torch.cuda.make_graphed_callables(self._crops, (boxes.clone(),))
        # A copy, since the next batch is written to the memory of the graph.
        crops: Tensor = self._graph(boxes).clone()
        return crops

    def _crops(self, boxes: Tensor) -> Tensor:
        return resized(self.pixels, boxes, self.most, self.channels, self.side)


_sharing = 1


def share_gpu(trainings: int) -> None:
    """Tell this process how many trainings run on its GPU at the same time. They change no number, only `has_room`."""
    global _sharing
    _sharing = trainings


def has_room(device: torch.device, n_bytes: int, most: int) -> bool:
    """Tell whether a GPU can keep data beside a training; always False for a CPU.

    Trainings that share a GPU (`share_gpu`) start together and see the same free memory, so each may take its part.
    """
    return device.type == "cuda" and n_bytes <= min(most, torch.cuda.mem_get_info(device)[0] // 2) // _sharing


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
    ) -> None:
        self.images, self.settings, self.device = images, settings, device
        # A constant on each kind of device, since it decides last digits.
        self.batch = 256 if device.type == "cuda" else 64
        n_bytes = len(images) * images.images.channels * settings.crop**2
        self._on_device = keep and has_room(device, n_bytes, DEVICE_BYTES)
        self._keeps = self._on_device or (keep and n_bytes <= HOST_BYTES)
        self._crops: list[Tensor] | None = None

    def batches(self) -> Iterator[Tensor]:
        """Yield all crops in the order of the images."""
        if self._crops is not None:
            for crops in self._crops:
                yield crops.to(self.device)
            return
        all_crops = []
        for first in range(0, len(self.images), self.batch):
            rows = np.arange(first, min(first + self.batch, len(self.images)))
            crops = evaluation_batch(self.images, rows, self.settings)
            on_device = crops.to(self.device)
            if self._keeps:
                all_crops.append(on_device if self._on_device else crops)
            yield on_device
        self._crops = all_crops if self._keeps else None


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
