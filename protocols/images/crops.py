"""Crops of a batch: random resized crops for training, centre crops for evaluation (specification, section 3).

Pixels are resized by Pillow, as in the protocol's own code; torch's antialiased uint8 kernel is off by one grey level
in some of them. Random numbers come from one generator, so the outcome does not depend on how the work is spread.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from protocols.images.packed import LabelledImages
from results.specs import ImageSettings

_TRIES = 10


def training_batch(
    images: LabelledImages, indices: NDArray[np.int64], settings: ImageSettings, generator: torch.Generator
) -> Tensor:
    """Random resized crops with flips of `indices`: uint8 (batch, channels, crop, crop)."""
    crops = []
    for index in indices:
        image = images.image(int(index))
        box = random_box(image.shape[0], image.shape[1], settings, generator)
        crop = _chw(_resized(image, box, settings.crop))
        if settings.flip and torch.rand((), generator=generator).item() < 0.5:
            crop = crop.flip(-1)
        crops.append(crop)
    return torch.stack(crops)


def evaluation_batch(images: LabelledImages, indices: NDArray[np.int64], settings: ImageSettings) -> Tensor:
    """Centre crops of `indices`: uint8 (batch, channels, crop, crop)."""
    return torch.stack([centre_crop(_chw(images.image(int(index))), settings.crop) for index in indices])


def random_box(
    height: int, width: int, settings: ImageSettings, generator: torch.Generator
) -> tuple[int, int, int, int]:
    """Top, left, height and width of a random resized crop.

    Area uniform in `settings.area` of the image, aspect ratio log-uniform in `settings.ratio`; after ten boxes that do
    not fit, the largest centred box of an allowed ratio (Szegedy et al. 2015, as torchvision does it).
    """
    low, high = (math.log(bound) for bound in settings.ratio)
    for _ in range(_TRIES):
        draws = torch.rand(4, generator=generator, dtype=torch.float64).tolist()
        area = height * width * (settings.area[0] + draws[0] * (settings.area[1] - settings.area[0]))
        ratio = math.exp(low + draws[1] * (high - low))
        box_width, box_height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < box_width <= width and 0 < box_height <= height:
            top = int(draws[2] * (height - box_height + 1))
            left = int(draws[3] * (width - box_width + 1))
            return top, left, box_height, box_width
    ratio = min(max(width / height, settings.ratio[0]), settings.ratio[1])
    box_width, box_height = min(width, round(height * ratio)), min(height, round(width / ratio))
    return (height - box_height) // 2, (width - box_width) // 2, box_height, box_width


def centre_crop(image: Tensor, side: int) -> Tensor:
    """The central `side` x `side` of (channels, height, width); an image smaller than that is padded with black."""
    height, width = image.shape[1:]
    if height < side or width < side:
        pad_x, pad_y = max(side - width, 0), max(side - height, 0)
        image = functional.pad(image, (pad_x // 2, pad_x - pad_x // 2, pad_y // 2, pad_y - pad_y // 2))
        height, width = image.shape[1:]
    top, left = round((height - side) / 2), round((width - side) / 2)
    return image[:, top : top + side, left : left + side]


def _chw(image: NDArray[np.uint8]) -> Tensor:
    # Copied because the map is read-only, which torch tensors cannot be.
    return torch.from_numpy(image.transpose(2, 0, 1).copy())


def _resized(image: NDArray[np.uint8], box: tuple[int, int, int, int], side: int) -> NDArray[np.uint8]:
    """The box (top, left, height, width) of an image (h, w, channels) as a square of `side`."""
    top, left, height, width = box
    # Cut before it is resized: given a box, Pillow's filter would reach over its edges.
    part = image[top : top + height, left : left + width]
    picture = Image.fromarray(np.ascontiguousarray(part[..., 0] if part.shape[2] == 1 else part))
    return np.asarray(picture.resize((side, side), Image.Resampling.BILINEAR)).reshape(side, side, -1)
