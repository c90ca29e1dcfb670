"""The common look of all figures (colours, markers, text sizes), and the functions that save figures.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish. Each colour has its own marker and
line style, so a figure is also readable in grey. Figures are built without pyplot, so there is no global state.
"""

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)))
BLUE, ORANGE, INK, GREY = COLOURS[0], COLOURS[1], "#222222", "#666666"
FONT = "DejaVu Sans"
"""It comes with matplotlib, so a figure looks the same on every machine."""

WIDTH = 7.2
"""Width of a figure in inches: the width of a text column."""

PAGE_WIDTH = 4.6
"""Width of a figure of an experiment's page in inches: a phone shows it whole, with text that can be read."""

_SETTINGS: Any = {
    "font.family": FONT,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # Two dollar signs in a name are not a formula.
    "text.parse_math": False,
    # Text as outlines looks the same on every machine. A fixed salt gives the same file for the same figure.
    "svg.fonttype": "path",
    # Fonts as TrueType, which publishers ask for.
    "pdf.fonttype": 42,
    "svg.hashsalt": "metric-learning-reproductions",
    # The images of an SVG stay apart: put together, they would be enlarged to the file's dpi.
    "image.composite_image": False,
}

P = ParamSpec("P")

Look = dict[str, Any]
"""Keyword arguments for matplotlib's drawing functions."""


class FigureError(ValueError):
    """A figure cannot be drawn from the given values. The message names what the figure needs."""


@contextmanager
def _look() -> Iterator[None]:
    """Draw with the common settings and matplotlib's defaults, whatever style the user has."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a drawing function, so that it draws with the common settings."""

    @wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with _look():
            return draw(*args, **kwargs)

    return inside


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Make an empty figure. Height and width are in inches; the layout keeps its parts from overlapping."""
    return Figure(figsize=(width, height), layout="constrained")


def files_of(figure: Figure) -> dict[str, str | bytes]:
    """Return the figure as SVG, PNG with 170 dpi, and PDF, by suffix. The same figure gives the same files."""
    with _look(), warnings.catch_warnings():
        # The font has no Chinese, Japanese, Korean, Thai or Indic letters; a box stands for each.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        # The layout is computed once. A second computation would start from the first and move parts a little. Without
        # a layout engine, matplotlib draws the figure once for each file and not twice.
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)
        return {
            "svg": _written(figure, "svg", metadata={"Date": None}).decode(),
            # Level 3 takes 0.72 of the time of pillow's own level 6, and its files are 6 % larger.
            "png": _written(figure, "png", pil_kwargs={"compress_level": 3}),
            "pdf": _written(figure, "pdf", metadata={"CreationDate": None}),
        }


def _written(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=170, **options)
    return buffer.getvalue()


def legend_keys(*axes: Axes) -> tuple[list[Artist], list[str]]:
    """Return handles and labels of a legend with one entry for each label."""
    pairs = (zip(*each.get_legend_handles_labels(), strict=True) for each in axes)
    keys = {label: handle for of_axes in pairs for handle, label in of_axes}
    return list(keys.values()), list(keys)


def sign(index: int) -> Look:
    """Return colour, marker and line style of series number `index`. All three repeat after seven series."""
    style = index % len(COLOURS)
    return {"color": COLOURS[style], "marker": MARKERS[style], "linestyle": LINES[style]}
