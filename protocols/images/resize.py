"""MLRC's first transform: a bilinear resize of the shorter side, by Pillow (specification, section 3)."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def resized_to(picture: Image.Image, shorter_side: int) -> Image.Image:
    """Resize a picture bilinearly with Pillow so that its shorter side has `shorter_side` pixels."""
    return picture.resize(size_after(picture.size, shorter_side), Image.Resampling.BILINEAR)


def size_after(size: tuple[int, int], shorter_side: int) -> tuple[int, int]:
    """Return width and height after the resize; the longer side is rounded down, as in torchvision."""
    width, height = size
    if width <= height:
        return shorter_side, int(shorter_side * height / width)
    return int(shorter_side * width / height), shorter_side


def resized_shapes(shapes: NDArray[np.int64], resize: int | None) -> NDArray[np.int64]:
    """Return shapes of images after the resize.

    Args:
        shapes: Height, width and channels of each image, int64 (n, 3); those of broken files, 0 x 0, are kept.
        resize: Shorter side in pixels after the resize; None keeps the shapes.
    """
    if resize is None:
        return shapes
    resized = shapes.copy()
    for row, (height, width, _) in enumerate(shapes.tolist()):
        if height:
            resized[row, 1], resized[row, 0] = size_after((width, height), resize)
    return resized
