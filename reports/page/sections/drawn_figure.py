"""Drawn figures: their view on the page, and their files beside it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from reports.figures.names_in_text import names_in_text, names_words
from reports.figures.style import FigureError, UndrawableError, png_of, svg_of
from reports.page.content import FigurePart, FigureView
from reports.page.render import embedded
from results.whole_files import write_whole


@dataclass(frozen=True)
class Drawn:
    """A figure as SVG and PNG.

    Attributes:
        name: Name of the files, without suffix.
        svg: Content of the SVG file; None if the figure cannot be drawn and has no files.
        view: The figure on the page; None if the page shows the same content as HTML.
        names: The names that the figure shows as numbers; empty if it has none. They get a file of their own.
    """

    name: str
    svg: str | None
    png: bytes | None
    view: FigureView | None
    names: str = ""

    def save(self, folder: Path) -> list[str]:
        """Write the files into `folder`, and return their names."""
        names = f"{self.names}\n" if self.names else None
        contents = {f"{self.name}.svg": self.svg, f"{self.name}.png": self.png, f"{self.name}.txt": names}
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
    part: FigurePart = "details",
) -> Iterable[Drawn]:
    """Draw a figure. Returns an empty list if there are no data for it: the page leaves such a figure out.

    A figure whose data cannot be drawn, such as equal embeddings, becomes a sentence with the reason.

    Args:
        describe: Writes the alternative text. It is called only if the figure was drawn.
        fold: Title of the collapsed group that the figure belongs to; empty for none.
        on_page: Whether the page shows the figure.
    """
    try:
        figure = draw()
    except UndrawableError as error:
        view = FigureView(title, "", "", f"This figure cannot be drawn: {error}.", fold, part) if on_page else None
        return [Drawn(name, None, None, view)]
    except FigureError:
        return []
    names = names_words(names_in_text(figure))
    svg, png = svg_of(figure), png_of(figure)
    caption = " ".join(text for text in (caption, names) if text)
    view = FigureView(title, embedded(svg, png), describe(), caption, fold, part) if on_page else None
    return [Drawn(name, svg, png, view, names)]
