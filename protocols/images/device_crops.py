"""Pillow's bilinear resize as two batched matrix products, for all crops of a batch at once on the network's device.

Pillow weights pixels with a triangle, which is wider if the image shrinks. It stores each weight as a multiple of 2^-22
and rounds to whole grey levels after each axis (its `Resample.c`). Here each weight is split into two parts of eleven
bits. Every partial sum is then a whole number below 2^24, and float32 (and TF32) adds such numbers without an error, in
any order. The result is therefore equal to Pillow's on every device and for every number of threads, if no axis shrinks
more than 31-fold. Beyond that, single pixels can differ by one grey level.

The order of the axes can change a pixel by one grey level. Pillow resizes the width first. Since version 13 it resizes
the height first for boxes that lose more than twice as many rows as columns.
"""

import math
from typing import Any

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.images.crops import Cuts

PIXELS_AT_ONCE = 2**25
"""Largest number of values (pixels times channels, padded to the largest box) of one product; about 0.5 GB."""

_WEIGHT_BITS = 22
"""Pillow's weights are multiples of 2 to the power of minus this number."""
_LOW_BITS = 11
_TALL_BOXES_HEIGHT_FIRST = int(PIL.__version__.split(".")[0]) >= 13


Rows = NDArray[np.int64]


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
