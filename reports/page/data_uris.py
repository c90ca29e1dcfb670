"""Images as data URIs, so that a page needs no other file."""

import base64
import io
import re

import numpy as np
from matplotlib.image import imsave

_SVG_LIMIT = 400_000
"""Number of characters above which a figure is embedded as PNG, which is then smaller and faster to draw than SVG."""


def data_uri(content: bytes, media_type: str) -> str:
    """Encode `content` as a data URI."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


_WITHOUT_LOOK = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
"""Parts of an SVG file that change nothing in the picture."""


def embedded(svg: str, png: bytes) -> str:
    """Encode a figure as SVG, or as PNG if the SVG is very large."""
    if len(svg) > _SVG_LIMIT:
        return data_uri(png, "image/png")
    return data_uri(compact_svg(svg).encode(), "image/svg+xml")


def compact_svg(svg: str) -> str:
    """Shorten matplotlib's SVG without a visible change: comments and spaces go, and so do far decimals of places."""
    text = re.sub(r"\s*\n\s*", " ", _WITHOUT_LOOK.sub("", svg))
    # Numbers below 10 can be scales, so they keep all decimals.
    text = re.sub(r"(\d\d\.\d\d)\d+", r"\1", text)
    text = re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r" ?([MLQCz]) ?", r"\1", path[0]), text)
    return text.replace("> <", "><").strip()


def thumbnail_uri(image: np.ndarray, side: int = 112) -> str:
    """Shrink an image and encode it as a data URI of a PNG.

    Pixels are averaged over whole blocks, so a small image does not change.

    Args:
        image: uint8, height x width or height x width x 3.
        side: Approximate upper limit of the longer side in pixels.

    Raises:
        ValueError: If the array has another type or shape.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or 0 in image.shape:
        actual = f"{image.dtype} of shape {image.shape}"
        raise ValueError(f"a thumbnail needs uint8 pixels, height x width (x 3), not {actual}")
    block = max(1, round(max(image.shape[:2]) / side))
    height, width = (size // block * block for size in image.shape[:2])
    if not height or not width:
        block, height, width = 1, *image.shape[:2]
    blocks = image[:height, :width].reshape(height // block, block, width // block, block, -1)
    small = blocks.mean(axis=(1, 3)).round().astype(np.uint8)
    buffer = io.BytesIO()
    colours = small if small.shape[2] == 3 else np.repeat(small[..., :1], 3, axis=2)
    imsave(buffer, colours, format="png")
    return data_uri(buffer.getvalue(), "image/png")
