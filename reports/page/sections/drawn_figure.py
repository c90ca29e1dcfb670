"""Drawn figures: their place on the page and their files beside it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from reports.figures.style import FigureError, png_of, svg_of
from reports.page.content import FigureView
from reports.page.data_uris import embedded
from results.whole_files import write_whole


@dataclass(frozen=True)
class Drawn:
    """A figure as SVG and PNG. name: of its files; view: on the page, None where the page shows the same as HTML."""

    name: str
    svg: str
    png: bytes
    view: FigureView | None

    def save(self, folder: Path) -> None:
        """Writes both files."""
        write_whole(folder / f"{self.name}.svg", self.svg)
        write_whole(folder / f"{self.name}.png", self.png)


def drawn(
    name: str, title: str, draw: Callable[[], Figure], alt: str, caption: str = "", fold: str = "", on_page: bool = True
) -> Iterable[Drawn]:
    """The figure, or nothing if there is nothing to draw: a figure without data is left out, not filled in."""
    try:
        figure = draw()
    except FigureError:
        return []
    svg, png = svg_of(figure), png_of(figure)
    view = FigureView(title, embedded(svg, png), alt, caption, fold) if on_page else None
    return [Drawn(name, svg, png, view)]


def file_name(name: str) -> str:
    """A name as part of a file's: letters, digits, `_`, `.` and `-`, so that it stays in its folder."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "unnamed"
