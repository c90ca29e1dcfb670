"""MLRC's first transform: a bilinear resize of the shorter side, by Pillow (specification, section 3)."""

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
