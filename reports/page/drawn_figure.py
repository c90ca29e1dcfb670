"""Drawn figures: their pictures on the page, and their files beside it."""

import base64
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imsave

from reports.figures.style import FigureError, UndrawableError, png_of, svg_of
from results.whole_files import write_whole

_SVG_LIMIT = 400_000
"""Number of characters above which a figure is embedded as PNG, which is then smaller and faster to draw than SVG."""

_WITHOUT_LOOK = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
"""Parts of an SVG file that change nothing in the picture."""


@dataclass(frozen=True)
class Drawn:
    """A figure.

    Attributes:
        name: Name of the files, without suffix.
        svg: Content of the SVG file; None, as `png`, if the figure cannot be drawn.
        caption: Explains how to read the figure, or why it cannot be drawn.
        fold: Heading of the collapsed group that the figure belongs to; empty for a figure that is always visible.
        on_page: Whether the page shows it.
    """

    name: str
    title: str
    svg: str | None
    png: bytes | None
    alt: str = ""
    caption: str = ""
    fold: str = ""
    on_page: bool = True

    @property
    def image(self) -> str:
        """The picture as a data URI; empty for a figure that cannot be drawn."""
        if self.svg is None or self.png is None:
            return ""
        if len(self.svg) > _SVG_LIMIT:
            return data_uri(self.png, "image/png")
        return data_uri(compact_svg(self.svg).encode(), "image/svg+xml")

    def save(self, folder: Path) -> list[str]:
        """Write the files into `folder`, and return their names."""
        contents = {f"{self.name}.svg": self.svg, f"{self.name}.png": self.png}
        written = {name: content for name, content in contents.items() if content is not None}
        for name, content in written.items():
            write_whole(folder / name, content)
        return list(written)


def drawn(
    name: str,
    title: str,
    draw: Callable[[], Figure],
    describe: Callable[[], str],
    caption: str = "",
    fold: str = "",
    on_page: bool = True,
) -> Iterator[Drawn]:
    """Draw a figure; nothing if there are no data for it.

    A figure whose data cannot be drawn, such as equal embeddings, becomes a sentence with the reason. `describe` writes
    the alternative text, and is called only if the figure was drawn.
    """
    try:
        figure = draw()
    except UndrawableError as error:
        yield Drawn(name, title, None, None, "", f"This figure cannot be drawn: {error}.", fold, on_page)
    except FigureError:
        return
    else:
        yield Drawn(name, title, svg_of(figure), png_of(figure), describe(), caption, fold, on_page)


def data_uri(content: bytes, media_type: str) -> str:
    """Encode `content` as a data URI."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def compact_svg(svg: str) -> str:
    """Shorten matplotlib's SVG without a visible change: comments and spaces go, and so do far decimals of places."""
    text = re.sub(r"\s*\n\s*", " ", _WITHOUT_LOOK.sub("", svg))
    # Numbers below 10 can be scales, so they keep all decimals.
    text = re.sub(r"(\d\d\.\d\d)\d+", r"\1", text)
    text = re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r" ?([MLQCz]) ?", r"\1", path[0]), text)
    return text.replace("> <", "><").strip()


def thumbnail_uri(image: np.ndarray, side: int = 112) -> str:
    """Shrink an image by averages over whole blocks of pixels, and encode it as a data URI of a PNG.

    Args:
        image: uint8, height x width or height x width x 3.
    """
    block = max(1, round(max(image.shape[:2]) / side))
    block = block if min(image.shape[:2]) >= block else 1
    height, width = (size // block * block for size in image.shape[:2])
    blocks = image[:height, :width].reshape(height // block, block, width // block, block, -1)
    small = blocks.mean(axis=(1, 3)).round().astype(np.uint8)
    buffer = io.BytesIO()
    imsave(buffer, small if small.shape[2] == 3 else np.repeat(small[..., :1], 3, axis=2), format="png")
    return data_uri(buffer.getvalue(), "image/png")
