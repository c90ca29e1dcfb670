"""Pictures as data URIs, so that a page needs no other file."""

import base64
import io

import numpy as np
from matplotlib.image import imsave

_SVG_LIMIT = 400_000
"""Characters beyond which a figure of many points is smaller, and drawn faster, as PNG."""


def data_uri(content: bytes, media_type: str) -> str:
    """`content` as a `data:` address."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def embedded(svg: str, png: bytes) -> str:
    """A figure that was drawn both ways as SVG, or as PNG where the SVG is very large."""
    if len(svg) > _SVG_LIMIT:
        return data_uri(png, "image/png")
    return data_uri(svg.encode(), "image/svg+xml")


def thumbnail_uri(image: np.ndarray, side: int = 112) -> str:
    """An image (uint8, height x width or height x width x 3) as PNG, its longer side about `side` pixels at most.

    Pixels are averaged over whole blocks, so a small image stays as it is. Raises ValueError for other arrays.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or 0 in image.shape:
        given = f"{image.dtype} of shape {image.shape}"
        raise ValueError(f"a thumbnail is made of uint8, height x width (x 3), not {given}")
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
