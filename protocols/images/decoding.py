"""Decoding of image files as RGB with 8 bits per channel.

A picture is decoded as people see it: on white ground where it is transparent, and turned upright as its EXIF tag says.
MLRC's code does neither, so the published datasets are decoded without (`as_mlrc`).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

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


class BrokenImageError(Exception):
    """An image cannot be decoded. The message names the image and the remedy."""


@dataclass(frozen=True)
class Decoded:
    """A decoded file.

    Attributes:
        picture: The picture as RGB.
        is_altered: Whether white ground or the turn of the EXIF tag made it another picture.
        is_deep: Whether it is grey with 9 to 16 bits, of which the upper byte was taken.
    """

    picture: Image.Image
    is_altered: bool
    is_deep: bool


def decoded(path: Path, *, as_mlrc: bool) -> Decoded:
    """Decode one file as RGB with 8 bits per channel.

    Grey images with 16 bits are scaled to 8 bits by their upper byte, as Pillow scales colours with 16 bits.

    Args:
        as_mlrc: Whether to ignore transparency and EXIF tag, as MLRC's code does.
    """
    try:
        # Pillow maps some kinds of files that it opens by path, and a map of a file that is cut off ends the process.
        with path.open("rb") as file, Image.open(file) as image:
            _check_range(image)
            turn = None if as_mlrc else _turn_of(image)
            deep = _has_deep_grey(image)
            opaque = _upper_bytes(image) if deep else image
            on_white = None if as_mlrc else _on_white(opaque)
            rgb = on_white or opaque.convert("RGB")
    except UnidentifiedImageError as error:
        raise _broken(path, "no image that Pillow knows") from error
    except _UNREADABLE as error:
        raise _broken(path, str(error)) from error
    if turn is not None:
        rgb = rgb.transpose(turn)
    return Decoded(rgb, on_white is not None or turn is not None, deep)


def _broken(path: Path, reason: str) -> BrokenImageError:
    reason = " ".join(reason.split())
    return BrokenImageError(
        f"{path}: cannot be decoded ({reason}); repair or remove it, or leave it out with --skip-broken-images"
    )


def is_constant(picture: Image.Image) -> bool:
    """Return whether all pixels of an RGB picture are equal."""
    return all(low == high for low, high in (band.getextrema() for band in picture.split()))


def _has_deep_grey(image: Image.Image) -> bool:
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


def _check_range(image: Image.Image) -> None:
    if image.mode == "F" or (image.mode == "I" and not _has_deep_grey(image)):
        what = "floating point numbers" if image.mode == "F" else "whole numbers of 32 bits"
        raise ValueError(f"it holds {what}, whose range is not known; convert it to 8 or 16 bits per channel")


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
