"""Pillow's crops of small images, for a whole batch at once on a CPU.

Pillow's bilinear resize is a matrix product along each axis, with rounding after each. A batch then costs two batched
products in place of a call of Pillow for every image. As in `device_crops`, which says how Pillow rounds, weights have
two parts, so that sums in float32 are exact and the crops are equal to Pillow's.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.images.crops import Cuts, cut_crops
from protocols.images.device_crops import EXACT_SHRINK, LOW_BITS, resized_height_first, split_weights
from protocols.images.packed_images import LabelledImages

MOST_PRODUCTS = 2**20
"""Largest number of products of a crop; with more of them Pillow is faster."""
IMAGES_BYTES = 2**28
"""Largest size in bytes of the images, each as large as the largest."""


class SmallCrops:
    """Crops of small images, with the pixels of `cut_crops`.

    Args:
        images: Images for which `fits` is true.
        side: Side of the crops in pixels.
    """

    def __init__(self, images: LabelledImages, side: int) -> None:
        self.images, self.side = images, side
        height, width = _largest(images)
        self._shape = (len(images), images.images.channels, height, width)
        pixels = np.zeros(self._shape, dtype=np.uint8)
        for position in range(len(images)):
            image = images.image(position).transpose(2, 0, 1)
            pixels[position, :, : image.shape[1], : image.shape[2]] = image
        # A window can go beyond its image, where all weights are 0; the zeros are for the windows of the last image.
        flat = torch.cat([torch.from_numpy(pixels).flatten(), torch.zeros((height + 1) * width, dtype=torch.uint8)])
        self._windows = flat.as_strided((len(flat) - width + 1, width), (1, 1))
        self._down, self._across = _weights(height, side), _weights(width, side)

    def __call__(self, rows: NDArray[np.int64], cuts: Cuts) -> Tensor:
        """Make the crops of a batch.

        Args:
            rows: Positions of the images, (batch,).
            cuts: The cuts of these images.

        Returns:
            The crops, uint8 (batch, channels, side, side).
        """
        tops, lefts, heights, widths = cuts.boxes.T
        if resized_height_first(heights, widths, self.side).any():
            return cut_crops(self.images, rows, cuts, self.side)
        lines = self._lines(rows, tops, lefts)
        # Pillow resizes the width first. All channels of an image have the same weights, so they are one product.
        wide = _resized(self._across.index_select(0, torch.from_numpy(widths - 1)), lines.flatten(1, 2).mT)
        columns = wide.unflatten(2, lines.shape[1:3]).permute(0, 3, 2, 1).flatten(2)
        tall = _resized(self._down.index_select(0, torch.from_numpy(heights - 1)), columns)
        # numpy makes bytes several times faster than torch.
        levels = torch.from_numpy(tall.numpy().astype(np.uint8))
        crops: Tensor = levels.unflatten(2, (-1, self.side)).transpose(1, 2)
        flips = torch.from_numpy(cuts.flips)[:, None, None, None]
        return crops.where(~flips, crops.flip(-1)) if cuts.flips.any() else crops

    def _lines(self, rows: NDArray[np.int64], tops: NDArray[np.int64], lefts: NDArray[np.int64]) -> Tensor:
        """Pixels in float32 (batch, channels, height, width) from the upper left corners of boxes on.

        Beyond the end of an image follow pixels of others.
        """
        _, channels, height, width = self._shape
        corners = rows * channels * height * width + tops * width + lefts
        starts = corners[:, None] + np.arange(0, channels * height * width, width)
        lines = self._windows.index_select(0, torch.from_numpy(starts.ravel()))
        return lines.view(len(rows), channels, height, width).float()


def fits(images: LabelledImages, side: int) -> bool:
    """Whether images and crops are small enough for `SmallCrops`, and the crops not many times smaller.

    Args:
        images: The images.
        side: Side of the crops in pixels.
    """
    channels = images.images.channels
    if _products(*images.shape_of(0)[:2], channels, side) > MOST_PRODUCTS:  # Usual for photographs; saves a look.
        return False
    height, width = _largest(images)
    n_bytes = len(images) * channels * height * width
    exact = max(height, width) <= EXACT_SHRINK * side
    return exact and _products(height, width, channels, side) <= MOST_PRODUCTS and n_bytes <= IMAGES_BYTES


def _products(height: int, width: int, channels: int, side: int) -> int:
    """Products of a crop: both parts of the weights with the image, then with the resized lines."""
    return 2 * side * height * channels * (width + side)


def _largest(images: LabelledImages) -> tuple[int, int]:
    height, width = np.max(images.shapes_of(np.arange(len(images))), axis=0).tolist()[:2]
    return height, width


def _weights(length: int, side: int) -> Tensor:
    """Weights of an axis for boxes of 1 to `length` pixels: as `split_weights`, but times 2 to the -`LOW_BITS`."""
    return split_weights(torch.arange(1, length + 1), length, side) * 2.0**-LOW_BITS


def _resized(weights: Tensor, pixels: Tensor) -> Tensor:
    """Resize pixels (n, length, any) with weights (n, 2 * side, length) to whole grey levels (n, side, any).

    Pillow also limits them to 0 to 255. Here the weights of an output pixel are not negative, and their sum is nearer
    to 1 than the rounding could notice, so there is nothing to limit.
    """
    high, low = (weights @ pixels).chunk(2, dim=1)
    # High sums are multiples of 2^-11, so what the low sums have below 2^-11 cannot change the rounding.
    return torch.add(high, low.floor_(), alpha=2.0**-LOW_BITS).add_(0.5).floor_()
