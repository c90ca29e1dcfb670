"""Random resized crops for training and centre crops for evaluation (specification, section 3).

Pillow resizes, as in MLRC's code; torch's antialiased uint8 kernel differs by one grey level in some pixels. All random
numbers come from one generator, so the number of threads or processes does not change the crops.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from protocols.images.packed_images import LabelledImages
from results.spec.conditions import ImageSettings


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


def cut_crops(images: LabelledImages, indices: NDArray[np.int64], cuts: Cuts, side: int) -> Tensor:
    """Cut crops out of images and resize them with Pillow; returns uint8 (batch, channels, side, side)."""
    crops = []
    for index, box, flip in zip(indices, cuts.boxes.tolist(), cuts.flips.tolist(), strict=True):
        crop = _chw(_resized(images.image(int(index)), box, side))
        crops.append(crop.flip(-1) if flip else crop)
    return torch.stack(crops)


def evaluation_batch(images: LabelledImages, indices: NDArray[np.int64], settings: ImageSettings) -> Tensor:
    """Make centre crops, uint8 (batch, channels, crop, crop), after the resize of the settings if there is one."""
    crops = []
    for index in indices:
        image = images.image(int(index))
        if settings.evaluation_resize is not None:
            picture = _picture(image)
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


def _resized(image: NDArray[np.uint8], box: Sequence[int], side: int) -> NDArray[np.uint8]:
    top, left, height, width = box
    # The box is cut first. If Pillow's resize gets the box as an argument, its filter uses pixels outside of it.
    picture = _picture(image[top : top + height, left : left + width])
    return _pixels(picture.resize((side, side), Image.Resampling.BILINEAR))


def _picture(image: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(image[..., 0] if image.shape[2] == 1 else image))


def _pixels(picture: Image.Image) -> NDArray[np.uint8]:
    return np.asarray(picture).reshape(picture.height, picture.width, -1)
