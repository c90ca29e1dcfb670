"""Decoding of image files as RGB with 8 bits per channel, and MLRC's first transform."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from protocols.images.crops import resized_to

_UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)


class BrokenImageError(Exception):
    """An image cannot be decoded. The message names the image and the remedy."""


class UnknownRangeError(BrokenImageError):
    """An image holds numbers whose range is not known, so that they cannot be converted to 8 bits."""


def decode(path: Path, resize: int | None) -> NDArray[np.uint8]:
    """Decode one file as RGB, uint8 (height, width, 3), with the shorter side resized unless `resize` is None.

    Grey images with 16 bits are scaled to 8 bits by their upper byte, as Pillow scales colours with 16 bits.
    """
    if not path.is_file():
        raise BrokenImageError(f"{path}: cannot be decoded (not a file)")
    try:
        # Pillow maps some kinds of files that it opens by path, and a map of a file that is cut off ends the process.
        with path.open("rb") as file, Image.open(file) as image:
            _check_range(path, image)
            rgb = (_upper_bytes(image) if has_deep_grey(image) else image).convert("RGB")
    except _UNREADABLE as error:
        raise BrokenImageError(f"{path}: cannot be decoded ({error})") from error
    return np.asarray(rgb if resize is None else resized_to(rgb, resize))


def header_of(path: Path) -> tuple[int, int, bool]:
    """Read height, width and whether a grey image has more than 8 bits from a header; 0, 0 and False without one."""
    if not path.is_file():
        return 0, 0, False
    try:
        with Image.open(path) as image:
            deep = has_deep_grey(image)
            width, height = image.size
    except _UNREADABLE:
        return 0, 0, False
    return height, width, deep


def median_shorter_side(root: Path, names: Sequence[str]) -> float | None:
    """Return the median shorter side of about 200 images, in pixels; None if no file can be read."""
    headers = [header_of(root / name) for name in names[:: max(1, len(names) // 200)]]
    sides = [min(height, width) for height, width, _ in headers if height]
    return statistics.median(sides) if sides else None


def has_deep_grey(image: Image.Image) -> bool:
    """Return whether a picture is grey with 9 to 16 bits. Pillow's conversion to RGB would make it white."""
    # Pillow opens a PGM file with 16 bits in the mode of 32 bits.
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PPM", "PNG"))


def _check_range(path: Path, image: Image.Image) -> None:
    if image.mode == "F" or (image.mode == "I" and not has_deep_grey(image)):
        what = "floating point numbers" if image.mode == "F" else "whole numbers of 32 bits"
        raise UnknownRangeError(
            f"{path}: holds {what}, whose range is not known; convert it to 8 or 16 bits per channel, or leave it out "
            "with --skip-broken-images"
        )


def _upper_bytes(image: Image.Image) -> Image.Image:
    bits_per_sample = 258  # A tag of TIFF.
    bits = int(getattr(image, "tag_v2", {}).get(bits_per_sample, (16,))[0])
    values = np.asarray(image).astype(np.int64) >> (bits - 8)
    return Image.fromarray(values.clip(0, 255).astype(np.uint8))
