"""Random resized crops for training and centre crops for evaluation (specification, section 3).

Pillow resizes, as in MLRC's code; torch's antialiased uint8 kernel differs by one grey level in some pixels. All random
numbers come from one generator, so the number of threads or processes does not change the crops.

On a GPU, two batched matrix products do what Pillow does, for all crops of a batch at once. Pillow weights pixels with
a triangle, which is wider if the image shrinks. It stores each weight as a multiple of 2^-22 and rounds to whole grey
levels after each axis (its `Resample.c`). Here each weight is split into two parts of eleven bits. Every partial sum is
then a whole number below 2^24, and float32 (and TF32) adds such numbers without an error, in any order. The result is
therefore equal to Pillow's on every device and for every number of threads, if no axis shrinks more than 31-fold.
Beyond that, single pixels can differ by one grey level.

The order of the axes can change a pixel by one grey level. Pillow resizes the width first. Since version 13 it resizes
the height first for boxes that lose more than twice as many rows as columns.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from protocols.images.packed_images import LabelledImages
from results.spec.conditions import ImageSettings

PIXELS_AT_ONCE = 2**25
"""Largest number of values (pixels times channels, padded to the largest box) of one product; about 0.5 GB."""

_WEIGHT_BITS = 22
"""Pillow's weights are multiples of 2 to the power of minus this number."""
_LOW_BITS = 11
_TALL_BOXES_HEIGHT_FIRST = int(PIL.__version__.split(".")[0]) >= 13

Rows = NDArray[np.int64]


def size_after(size: tuple[int, int], shorter_side: int) -> tuple[int, int]:
    """Return width and height after a resize of the shorter side; the longer one is rounded down, as in torchvision."""
    width, height = size
    if width <= height:
        return shorter_side, int(shorter_side * height / width)
    return int(shorter_side * width / height), shorter_side


@dataclass(frozen=True)
class Cuts:
    """The random parts of the training crops of a batch.

    Attributes:
        boxes: Top, left, height and width in pixels of each image, int64 (batch, 4).
        flips: Whether each crop is mirrored left and right, bool (batch,).
    """

    boxes: NDArray[np.int64]
    flips: NDArray[np.bool_]


def random_cuts(
    images: LabelledImages, indices: NDArray[np.int64], settings: ImageSettings, generator: torch.Generator
) -> Cuts:
    """Draw the cuts of a batch, in the order of `indices`. Only the sizes of the images are read."""
    boxes, flips = [], []
    for height, width, _ in images.shapes_of(indices).tolist():
        boxes.append(random_box(height, width, settings, generator))
        flips.append(settings.flip and torch.rand((), generator=generator).item() < 0.5)
    return Cuts(np.asarray(boxes, dtype=np.int64).reshape(-1, 4), np.asarray(flips, dtype=np.bool_))


def cut_crops(
    cut: Callable[[int, Sequence[int]], Image.Image], indices: NDArray[np.int64], cuts: Cuts, side: int
) -> Tensor:
    """Cut crops out of images and resize them with Pillow; returns uint8 (batch, channels, side, side).

    Args:
        cut: Gives a box (top, left, height, width) of the image at a position.
    """
    crops = []
    for index, box, flip in zip(indices.tolist(), cuts.boxes.tolist(), cuts.flips.tolist(), strict=True):
        # The box is cut first. If Pillow's resize gets the box as an argument, its filter uses pixels outside of it.
        crop = cut(index, box).resize((side, side), Image.Resampling.BILINEAR)
        crops.append(crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip else crop)
    # Small crops cost less to paste than to convert one by one.
    strip = Image.new(crops[0].mode, (side, side * len(crops)))
    for place, crop in enumerate(crops):
        strip.paste(crop, (0, side * place))
    return torch.from_numpy(_pixels(strip).reshape(len(crops), side, side, -1).transpose(0, 3, 1, 2).copy())


def picture_of(image: NDArray[np.uint8]) -> Image.Image:
    """Return an image (height, width, channels), grey or RGB, as Pillow's."""
    return Image.fromarray(np.ascontiguousarray(image[..., 0] if image.shape[2] == 1 else image))


def evaluation_batch(images: LabelledImages, indices: NDArray[np.int64], settings: ImageSettings) -> Tensor:
    """Make centre crops, uint8 (batch, channels, crop, crop), after the resize of the settings if there is one."""
    crops = []
    for index in indices:
        image = images.image(int(index))
        if settings.evaluation_resize is not None:
            picture = picture_of(image)
            size = size_after(picture.size, settings.evaluation_resize)
            image = _pixels(picture.resize(size, Image.Resampling.BILINEAR))
        crops.append(centre_crop(_chw(image), settings.crop))
    return torch.stack(crops)


def random_box(
    height: int, width: int, settings: ImageSettings, generator: torch.Generator
) -> tuple[int, int, int, int]:
    """Draw top, left, height and width of a random resized crop (Szegedy et al. 2015, in torchvision's version).

    The area is uniform in `settings.area` times the image's area; the aspect ratio is log-uniform in `settings.ratio`.
    If ten boxes do not fit into the image, the box is the largest centred one with an allowed ratio.
    """
    low, high = (math.log(bound) for bound in settings.ratio)
    least, most = settings.area
    for _ in range(10):
        to_area, to_ratio, to_top, to_left = torch.rand(4, generator=generator, dtype=torch.float64).tolist()
        area = height * width * (least + to_area * (most - least))
        ratio = math.exp(low + to_ratio * (high - low))
        box_width, box_height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < box_width <= width and 0 < box_height <= height:
            top, left = int(to_top * (height - box_height + 1)), int(to_left * (width - box_width + 1))
            return top, left, box_height, box_width
    ratio = min(max(width / height, settings.ratio[0]), settings.ratio[1])
    box_width, box_height = min(width, round(height * ratio)), min(height, round(width / ratio))
    return (height - box_height) // 2, (width - box_width) // 2, box_height, box_width


def centre_crop(image: Tensor, side: int) -> Tensor:
    """Cut the central `side` x `side` pixels out of an image (channels, height, width); pad it with black if needed."""
    height, width = image.shape[1:]
    if height < side or width < side:
        pad_x, pad_y = max(side - width, 0), max(side - height, 0)
        image = functional.pad(image, (pad_x // 2, pad_x - pad_x // 2, pad_y // 2, pad_y - pad_y // 2))
        height, width = image.shape[1:]
    top, left = round((height - side) / 2), round((width - side) / 2)
    return image[:, top : top + side, left : left + side]


def _chw(image: NDArray[np.uint8]) -> Tensor:
    # Copied because the memory map is read-only, and torch has no read-only tensors.
    return torch.from_numpy(image.transpose(2, 0, 1).copy())


def _pixels(picture: Image.Image) -> NDArray[np.uint8]:
    return np.asarray(picture).reshape(picture.height, picture.width, -1)


def resized_boxes(pixels: Tensor, boxes: Rows, channels: int, side: int) -> Tensor:
    """Resize `numbers_of` boxes in flat uint8 memory to squares, uint8 (n, channels, side, side) on its device."""
    height, width = boxes[3:5].max(axis=1).tolist()
    at_once = max(1, PIXELS_AT_ONCE // (height * width * channels))
    parts = np.split(boxes, range(at_once, boxes.shape[1], at_once), axis=1)
    return torch.cat(
        [resized(pixels, to_device(part, pixels.device), (height, width), channels, side) for part in parts]
    )


def numbers_of(start: Rows, down: Rows, cuts: Cuts, channels: int, side: int) -> Rows:
    """What `resized` reads of boxes, int64 (7, n): start, steps down and right, size, whether turned and flipped.

    The axis that Pillow resizes second is the first one: tall boxes are turned where Pillow takes their height first.

    Args:
        start: Position of each box's first value in flat memory, one byte per value, (n,). The channels of a pixel are
            next to each other.
        down: Bytes from a row to the next, (n,).
        cuts: Sizes and flips of the boxes.
    """
    height, width = cuts.boxes[:, 2:].T
    right = np.full_like(down, channels)  # From a pixel to the next.
    turned = (height > side) & (height - side > 2 * (width - side)) & _TALL_BOXES_HEIGHT_FIRST
    down, right = np.where(turned, right, down), np.where(turned, down, right)
    height, width = np.where(turned, width, height), np.where(turned, height, width)
    return np.stack([start, down, right, height, width, turned, cuts.flips]).astype(np.int64)


def largest_sides(shapes: Rows) -> tuple[int, int]:
    """Return the largest height and width of `numbers_of` boxes of images with these shapes (n, channels or not)."""
    height, width = shapes[:, :2].max(axis=0).tolist()
    return (max(height, width),) * 2 if _TALL_BOXES_HEIGHT_FIRST else (height, width)


def to_device(values: NDArray[Any], device: torch.device) -> Tensor:
    """Copy values to a device; the host does not wait for a GPU."""
    host = torch.from_numpy(values)
    return (host.pin_memory() if device.type == "cuda" else host).to(device, non_blocking=True)


def resized(pixels: Tensor, numbers: Tensor, most: tuple[int, int], channels: int, side: int) -> Tensor:
    """Resize boxes that are at most `most` high and wide. All shapes follow from the arguments' shapes and numbers.

    Args:
        pixels: Flat uint8 memory.
        numbers: The boxes as `numbers_of` gives them, int64 (7, n), on the device of the pixels.
    """
    start, down, right, height, width, turned, flip = numbers
    offsets = _offsets(height, most[0], down)[:, None, :, None] + _offsets(width, most[1], right)[:, None, None, :]
    offsets = offsets + (start[:, None] + torch.arange(channels, device=pixels.device))[:, :, None, None]
    boxes = pixels[offsets].float().reshape(len(start), -1, most[1])
    wide = torch.bmm(boxes, _split_weights(width, most[1], side).transpose(1, 2))
    half = _rounded(*wide.chunk(2, dim=2)).float().reshape(len(start), channels, most[0], side)
    tall = torch.matmul(_split_weights(height, most[0], side)[:, None], half)
    crops = _rounded(*tall.chunk(2, dim=2))
    crops = crops.where(~turned.bool()[:, None, None, None], crops.mT)
    return crops.where(~flip.bool()[:, None, None, None], crops.flip(-1))


def _offsets(sizes: Tensor, most: int, step: Tensor) -> Tensor:
    """Bytes from the first pixel of an axis to each pixel (n, most); the last pixel, with weight zero, pads the end."""
    return torch.arange(most, device=sizes.device).minimum(sizes[:, None] - 1) * step[:, None]


def _split_weights(sizes: Tensor, most: int, side: int) -> Tensor:
    """The weight of every input pixel for every output pixel of an axis, in two parts of eleven bits.

    Whole numbers in float32, (n, 2 * side, most), high parts first. The high part times 2 to the power of `_LOW_BITS`,
    plus the low part, is the weight times 2 to the power of `_WEIGHT_BITS`.
    """
    first, whole = _axis_weights(sizes, most, side)
    high = (whole / 2**_LOW_BITS).round()
    parts = torch.cat([high, whole - high * 2**_LOW_BITS], dim=1).float()
    taps = whole.shape[2]
    tap = torch.arange(most, device=sizes.device) - first[..., None]
    inside = ((tap >= 0) & (tap < taps)).repeat(1, 2, 1)
    return parts.gather(2, tap.clamp(0, taps - 1).repeat(1, 2, 1)) * inside


def _axis_weights(sizes: Tensor, most: int, side: int) -> tuple[Tensor, Tensor]:
    """The first input pixel of every output pixel (n, side), and the weights of this and the next pixels.

    Weights are times 2 to the power of `_WEIGHT_BITS`: whole numbers in float64 (n, side, taps).
    """
    # In float64 and in the order of Pillow's operations, since Pillow rounds the results.
    scale = sizes.double()[:, None] / side
    filter_scale = scale.clamp(min=1.0)
    centre = (torch.arange(side, device=sizes.device, dtype=torch.float64) + 0.5) * scale
    first = (centre - filter_scale + 0.5).long().clamp(min=0)
    last = (centre + filter_scale + 0.5).long().minimum(sizes[:, None])
    taps = 2 * math.ceil(max(most / side, 1.0)) + 1
    pixel = first[..., None] + torch.arange(taps, device=sizes.device)
    height = 1.0 - ((pixel - centre[..., None] + 0.5) * (1.0 / filter_scale)[..., None]).abs()
    height = height.clamp(min=0.0) * (pixel < last[..., None])
    total = torch.zeros_like(centre)
    for tap in range(taps):
        total = total + height[..., tap]
    return first, (height / total[..., None] * 2**_WEIGHT_BITS + 0.5).floor()


def _rounded(high: Tensor, low: Tensor) -> Tensor:
    """Grey levels from the sums of both parts, rounded as in Pillow."""
    total = high.int() * 2**_LOW_BITS + low.int() + 2 ** (_WEIGHT_BITS - 1)
    return torch.bitwise_right_shift(total, _WEIGHT_BITS).clamp(0, 255).to(torch.uint8)
