"""One look for every figure: colours, signs, text sizes, and how a figure becomes a file.

Colours are Okabe and Ito's, which colour-blind readers tell apart; each goes with its own marker and line style, so
that a figure survives a print in grey. Figures are built without pyplot: no global state, nothing to close.
"""

import io
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)))
BLUE, ORANGE, INK, GREY, PALE = COLOURS[0], COLOURS[1], "#222222", "#666666", "#c8c8c8"
SEQUENTIAL = "cividis"
"""Colour map of a quantity: its lightness rises with the value, in colour and in grey."""

WIDTH = 7.2
"""Inches: a text column's width, and 691 pixels on a page."""

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
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
    # Names are names: two dollar signs in one are not a formula.
    "text.parse_math": False,
    # Text as outlines looks the same everywhere; a fixed salt gives the same file for the same figure.
    "svg.fonttype": "path",
    "svg.hashsalt": "metric-learning-reproductions",
}

P = ParamSpec("P")

Look = dict[str, Any]
"""Keyword arguments of an artist, shared by several of its calls."""


class FigureError(ValueError):
    """A figure cannot be drawn from these values; the message says which and what to give."""


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """A drawing function under the settings of this house."""

    @wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(_SETTINGS):
            return draw(*args, **kwargs)

    return inside


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure of that size in inches, whose parts make room for one another."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path_stem: Path) -> tuple[Path, Path]:
    """Writes `path_stem`.png (200 dpi) and `path_stem`.svg, making the folder; returns both paths."""
    path_stem.parent.mkdir(parents=True, exist_ok=True)
    paths = path_stem.with_name(path_stem.name + ".png"), path_stem.with_name(path_stem.name + ".svg")
    paths[0].write_bytes(png_of(figure))
    paths[1].write_text(svg_of(figure), encoding="utf-8")
    return paths


def svg_of(figure: Figure) -> str:
    """The figure as SVG, the same text for the same figure."""
    return _written(figure, "svg", metadata={"Date": None}).decode()


def png_of(figure: Figure) -> bytes:
    """The figure as PNG at 200 dpi."""
    return _written(figure, "png")


def _written(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with mpl.rc_context(_SETTINGS):
        # Laid out once and for all: solving again, from where the last solution stands, would move things a little.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        figure.savefig(buffer, format=kind, dpi=200, **options)
    return buffer.getvalue()


def sign(index: int) -> Look:
    """Colour, marker and line style of the series `index`; all three differ within seven series."""
    at = index % len(COLOURS)
    return {"color": COLOURS[at], "marker": MARKERS[at], "linestyle": LINES[at]}
