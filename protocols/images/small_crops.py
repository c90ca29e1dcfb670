"""Pillow's crops of small images, for a whole batch at once on a CPU.

Pillow's bilinear resize is a matrix product along each axis, with rounding after each. For images of a few dozen pixels
the matrices of all boxes fit into memory. A batch then costs two batched products in place of a call of Pillow for
every image. The sums are exact in float64, so the crops are equal to Pillow's (`device_crops` says how Pillow rounds).
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.images.crops import Cut, cut_crops
from protocols.images.device_crops import WEIGHT_BITS, axis_weights, resized_height_first
from protocols.images.packed_images import LabelledImages

TABLE_BYTES = 2**25
"""Largest size in bytes of the matrices of one axis."""
IMAGES_BYTES = 2**28
"""Largest size in bytes of the images, as float64."""


class SmallCrops:
    """Crops of small images, with the pixels of `cut_crops`.

    Args:
        images: Images for which `fits` is true.
        side: Side of the crops in pixels.
    """

    def __init__(self, images: LabelledImages, side: int) -> None:
        self.images, self.side = images, side
        height, width = _largest(images)
        self._pixels = torch.zeros(len(images), images.images.channels, height, width, dtype=torch.float64)
        for position in range(len(images)):
            image = torch.from_numpy(images.image(position).astype(np.float64)).permute(2, 0, 1)
            self._pixels[position, :, : image.shape[1], : image.shape[2]] = image
        self._down, self._across = _box_weights(height, side), _box_weights(width, side)

    def __call__(self, rows: NDArray[np.int64], cuts: Sequence[Cut]) -> Tensor:
        """Make the crops of a batch.

        Args:
            rows: Positions of the images, (batch,).
            cuts: One cut per image.

        Returns:
            The crops, uint8 (batch, channels, side, side).
        """
        boxes = np.asarray([cut.box for cut in cuts], dtype=np.int64)
        tops, lefts, heights, widths = boxes.T
        if resized_height_first(heights, widths, self.side).any():
            return cut_crops(self.images, rows, cuts, self.side)
        across = self._across[torch.from_numpy(lefts), torch.from_numpy(widths - 1)]
        down = self._down[torch.from_numpy(tops), torch.from_numpy(heights - 1)]
        wide = _grey_levels(self._pixels[torch.from_numpy(rows)] @ across.mT[:, None])
        crops = _grey_levels(down[:, None] @ wide).to(torch.uint8)
        flips = [cut.flip for cut in cuts]
        return crops.where(~torch.tensor(flips)[:, None, None, None], crops.flip(-1)) if any(flips) else crops


def fits(images: LabelledImages, side: int) -> bool:
    """Whether images and crops are small enough for `SmallCrops`.

    Args:
        images: The images.
        side: Side of the crops in pixels.
    """
    if max(images.image(0).shape[:2]) ** 3 * side * 8 > TABLE_BYTES:  # Usual for photographs; saves a look at all.
        return False
    height, width = _largest(images)
    tables = max(length**3 * side * 8 for length in (height, width))
    pixels = len(images) * images.images.channels * height * width * 8
    return tables <= TABLE_BYTES and pixels <= IMAGES_BYTES


def _largest(images: LabelledImages) -> tuple[int, int]:
    height, width = np.max([images.image(position).shape[:2] for position in range(len(images))], axis=0).tolist()
    return height, width


def _box_weights(length: int, side: int) -> Tensor:
    """Weights of every pixel of an axis for every output pixel, (offset, size - 1, side, length), as whole numbers."""
    weights = axis_weights(torch.arange(1, length + 1), length, side)
    table = torch.zeros(length, length, side, length, dtype=torch.float64)
    for offset in range(length):
        table[offset, : length - offset, :, offset:] = weights[: length - offset, :, : length - offset]
    return table


def _grey_levels(sums: Tensor) -> Tensor:
    """Round sums of weighted pixels as Pillow does, in place; the result stays float64."""
    return sums.add_(2.0 ** (WEIGHT_BITS - 1)).mul_(2.0**-WEIGHT_BITS).floor_().clamp_(0, 255)
