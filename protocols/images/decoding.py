"""Decoding of image files as RGB with 8 bits per channel, and MLRC's first transform.

A picture is decoded as people see it: on white ground where it is transparent, and turned upright as its EXIF tag says.
MLRC's code does neither, so the published datasets are decoded without (`as_mlrc`).
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from protocols.images.crops import resized_to

_UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What turns a picture upright, by the value of its EXIF tag."""

_SIDEWAYS = frozenset(turn for value, turn in _TURNS.items() if value >= 5)
"""The turns that swap width and height."""


class BrokenImageError(Exception):
    """An image cannot be decoded. The message names the image and the remedy."""


class UnknownRangeError(BrokenImageError):
    """An image holds numbers whose range is not known, so that they cannot be converted to 8 bits."""


def decode(path: Path, resize: int | None, *, as_mlrc: bool = False) -> NDArray[np.uint8]:
    """Decode one file as RGB, uint8 (height, width, 3), with the shorter side resized unless `resize` is None.

    Grey images with 16 bits are scaled to 8 bits by their upper byte, as Pillow scales colours with 16 bits.

    Args:
        as_mlrc: Whether to ignore transparency and EXIF tag, as MLRC's code does.
    """
    return decoded(path, resize, as_mlrc=as_mlrc)[0]


def decoded(path: Path, resize: int | None, *, as_mlrc: bool) -> tuple[NDArray[np.uint8], bool]:
    """Decode one file as `decode` does, and say whether white ground or the turn made it another picture."""
    if not path.is_file():
        raise BrokenImageError(f"{path}: cannot be decoded (not a file)")
    try:
        # Pillow maps some kinds of files that it opens by path, and a map of a file that is cut off ends the process.
        with path.open("rb") as file, Image.open(file) as image:
            _check_range(path, image)
            turn = None if as_mlrc else _turn_of(image)
            opaque = _upper_bytes(image) if has_deep_grey(image) else image
            on_white = None if as_mlrc else _on_white(opaque)
            rgb = on_white or opaque.convert("RGB")
    except UnidentifiedImageError as error:
        raise BrokenImageError(f"{path}: cannot be decoded (no image that Pillow knows)") from error
    except _UNREADABLE as error:
        raise BrokenImageError(f"{path}: cannot be decoded ({error})") from error
    if turn is not None:
        rgb = rgb.transpose(turn)
    pixels = np.asarray(rgb if resize is None else resized_to(rgb, resize))
    return pixels, on_white is not None or turn is not None


def header_of(path: Path, *, as_mlrc: bool = False) -> tuple[int, int, bool]:
    """Read height, width and whether a grey image has more than 8 bits from a header; 0, 0 and False without one.

    Height and width are those of the decoded picture.
    """
    if not path.is_file():
        return 0, 0, False
    try:
        with Image.open(path) as image:
            deep = has_deep_grey(image)
            width, height = image.size
            turn = None if as_mlrc else _turn_of(image)
    except _UNREADABLE:
        return 0, 0, False
    return (width, height, deep) if turn in _SIDEWAYS else (height, width, deep)


def median_shorter_side(root: Path, names: Sequence[str]) -> float | None:
    """Return the median shorter side of about 200 images, in pixels; None if no file can be read."""
    headers = [header_of(root / name) for name in names[:: max(1, len(names) // 200)]]
    sides = [min(height, width) for height, width, _ in headers if height]
    return statistics.median(sides) if sides else None


def has_deep_grey(image: Image.Image) -> bool:
    """Return whether a picture is grey with 9 to 16 bits. Pillow's conversion to RGB would make it white."""
    # Pillow opens a PGM file with 16 bits in the mode of 32 bits.
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PPM", "PNG"))


def _turn_of(image: Image.Image) -> Image.Transpose | None:
    """Return what turns a picture upright. It has to be called before the pixels are read."""
    if image.format == "TIFF":
        return None  # Pillow turns these itself.
    try:
        return _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:
        # Pillow raises many kinds of errors for a damaged tag. The picture is shown without it.
        return None


def _on_white(image: Image.Image) -> Image.Image | None:
    """Return a picture as RGB on white ground; None if it is opaque."""
    image.load()
    if not image.has_transparency_data:
        return None
    with_alpha = image.convert("RGBA")
    lowest, _ = with_alpha.getchannel("A").getextrema()
    if lowest == 255:
        return None
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), with_alpha).convert("RGB")


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
    values = np.asarray(image).astype(np.int64)
    grey = Image.fromarray((values >> (bits - 8)).clip(0, 255).astype(np.uint8))
    if "transparency" not in image.info:
        return grey
    # In a PNG with 16 bits, one grey value can stand for transparent.
    alpha = Image.fromarray(np.where(values == image.info["transparency"], 0, 255).astype(np.uint8))
    return Image.merge("LA", (grey, alpha))
