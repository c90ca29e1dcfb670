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
from dataclasses import dataclass
from typing import Any

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from torch import Tensor

PIXELS_AT_ONCE = 2**25
"""Largest number of values (pixels times channels, padded to the largest box) of one product; about 0.5 GB."""

_WEIGHT_BITS = 22
"""Pillow's weights are multiples of 2 to the power of minus this number."""
_LOW_BITS = 11
_TALL_BOXES_HEIGHT_FIRST = int(PIL.__version__.split(".")[0]) >= 13


Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """Boxes of n images in flat memory, one byte per value. The channels of a pixel are next to each other.

    Attributes:
        start: Position of each box's first value, (n,).
        down: Bytes from a row to the next, (n,).
        height: In pixels, (n,).
        width: In pixels, (n,).
        flip: Whether the crop is mirrored left and right, (n,).
    """

    start: Rows
    down: Rows
    height: Rows
    width: Rows
    flip: NDArray[np.bool_]


def resized_windows(pixels: Tensor, windows: Windows, channels: int, side: int) -> Tensor:
    """Resize boxes of images in flat uint8 memory to squares, uint8 (n, channels, side, side) on its device."""
    down, height, width = windows.down, windows.height, windows.width
    right = np.full_like(down, channels)  # From a pixel to the next.
    turned = (height > side) & (height - side > 2 * (width - side)) & _TALL_BOXES_HEIGHT_FIRST
    down, right = np.where(turned, right, down), np.where(turned, down, right)
    height, width = np.where(turned, width, height), np.where(turned, height, width)
    columns = np.stack([windows.start, down, right, height, width, turned, windows.flip]).astype(np.int64)
    parts = _parts(np.arange(len(windows.start)), height, width, channels)
    crops = []
    for part in parts:
        most = int(height[part].max()), int(width[part].max())
        crops.append(_resized(pixels, sent(columns[:, part], pixels.device), most, channels, side))
    if len(parts) == 1:
        return crops[0]
    return torch.cat(crops)[sent(np.argsort(np.concatenate(parts)), pixels.device)]


def _parts(positions: Rows, height: Rows, width: Rows, channels: int) -> list[Rows]:
    """Positions of the boxes that are resized together: all, or halves by size where one product is too large."""
    values = len(positions) * int(height[positions].max() * width[positions].max()) * channels
    if values <= PIXELS_AT_ONCE or len(positions) == 1:
        return [positions]
    by_size = positions[np.argsort(height[positions] * width[positions], kind="stable")]
    half = len(by_size) // 2
    return [part for rows in (by_size[:half], by_size[half:]) for part in _parts(rows, height, width, channels)]


def sent(values: NDArray[Any], device: torch.device) -> Tensor:
    """Copy values to a device; the host does not wait for a GPU."""
    host = torch.from_numpy(values)
    return (host.pin_memory() if device.type == "cuda" else host).to(device, non_blocking=True)


def _resized(pixels: Tensor, numbers: Tensor, most: tuple[int, int], channels: int, side: int) -> Tensor:
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
    whole = _axis_weights(sizes, most, side)
    high = (whole / 2**_LOW_BITS).round()
    return torch.cat([high, whole - high * 2**_LOW_BITS], dim=1).float()


def _axis_weights(sizes: Tensor, most: int, side: int) -> Tensor:
    """The weights times 2 to the power of `_WEIGHT_BITS`, whole numbers in float64 (n, side, most)."""
    # In float64 and in the order of Pillow's operations, since Pillow rounds the results.
    scale = sizes.double()[:, None] / side
    filter_scale = scale.clamp(min=1.0)
    centre = (torch.arange(side, device=sizes.device, dtype=torch.float64) + 0.5) * scale
    first = (centre - filter_scale + 0.5).long().clamp(min=0)
    last = (centre + filter_scale + 0.5).long().minimum(sizes[:, None])

    def triangle(pixel: Tensor, middle: Tensor, per_pixel: Tensor, begin: Tensor, end: Tensor) -> Tensor:
        height = 1.0 - ((pixel - middle + 0.5) * per_pixel).abs()
        return height.clamp(min=0.0) * ((pixel >= begin) & (pixel < end))

    per_pixel = 1.0 / filter_scale
    total = torch.zeros_like(centre)
    for tap in range(2 * math.ceil(max(most / side, 1.0)) + 1):
        total = total + triangle(first + tap, centre, per_pixel, first, last)
    pixel = torch.arange(most, device=sizes.device)
    dense = triangle(pixel, centre[..., None], per_pixel[..., None], first[..., None], last[..., None])
    weights: Tensor = (dense / total[..., None] * 2**_WEIGHT_BITS + 0.5).floor()
    return weights


def _rounded(high: Tensor, low: Tensor) -> Tensor:
    """Grey levels from the sums of both parts, rounded as in Pillow."""
    total = high.int() * 2**_LOW_BITS + low.int() + 2 ** (_WEIGHT_BITS - 1)
    return torch.bitwise_right_shift(total, _WEIGHT_BITS).clamp(0, 255).to(torch.uint8)
