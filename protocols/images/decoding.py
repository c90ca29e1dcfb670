"""Decoding of image files as RGB with 8 bits per channel.

A picture is put on white ground where it is transparent, and turned upright as its EXIF tag says. MLRC's code does
neither, so the published datasets are decoded without (`as_mlrc`). Colours are the numbers in the file: colour profiles
such as Display P3 are not applied.
"""

from pathlib import Path

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


def decoded(path: Path, *, as_mlrc: bool) -> tuple[Image.Image, bool]:
    """Decode one file as RGB with 8 bits per channel.

    Args:
        as_mlrc: Whether to ignore transparency and EXIF tag, as MLRC's code does.

    Returns:
        The picture, and whether white ground or the turn of the EXIF tag made it another one.
    """
    try:
        # Pillow maps some kinds of files that it opens by path, and a map of a file that is cut off ends the process.
        with path.open("rb") as file, Image.open(file) as image:
            if image.mode[0] in "IF":  # Pillow's conversion would make it white.
                raise ValueError("it holds more than 8 bits of grey or other numbers; convert it to 8 bits per channel")
            turn = None if as_mlrc else _turn_of(image)
            on_white = None if as_mlrc else _on_white(image)
            rgb = on_white or image.convert("RGB")
    except UnidentifiedImageError as error:
        raise _broken(path, "no image that Pillow knows") from error
    except _UNREADABLE as error:
        raise _broken(path, str(error)) from error
    if turn is not None:
        rgb = rgb.transpose(turn)
    return rgb, on_white is not None or turn is not None


def _broken(path: Path, reason: str) -> BrokenImageError:
    reason = " ".join(reason.split())
    return BrokenImageError(
        f"{path}: cannot be decoded ({reason}); repair or remove it, or leave it out with --skip-broken-images"
    )


def is_constant(picture: Image.Image) -> bool:
    """Return whether all pixels of an RGB picture are equal."""
    return all(low == high for low, high in (band.getextrema() for band in picture.split()))


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
