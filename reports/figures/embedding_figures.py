"""Figures of embeddings: singular values, and a gallery of nearest neighbours.

The singular values (as in NIR, Fig. 4) show how many directions a model uses.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter

from reports.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    FigureError,
    Look,
    UndrawableError,
    legend_keys,
    new_figure,
    shortened,
    sign,
    styled,
)
from results.records.artifacts import FigureData

CAPTION_OF_SPECTRA = "Model of the first fold of run 1, all test images."


@styled
def singular_value_spectrum(spectra: Mapping[str, np.ndarray], width: float = 5.6) -> Figure:
    """Draw the singular values of each model as shares of their sum, largest first, on a logarithmic axis.

    The dotted line is a flat spectrum. A model uses more directions the closer its curve is to this line. A curve ends
    before its first value of 0.

    Args:
        spectra: Singular values of a model's embedding matrix, not negative, in any order, by the model's name.
    """
    for name, values in spectra.items():
        if not np.isfinite(values).all() or not values.size or values.min() < 0 or values.max() <= 0:
            raise UndrawableError(
                f"the spectrum of {name!r} needs at least one positive value and no negative or infinite value"
            )
    if not spectra:
        raise FigureError("the spectrum needs at least one model")
    figure = new_figure(3.4, width)
    axes = figure.add_subplot()
    for index, (name, values) in enumerate(spectra.items()):
        shares = _shares(values)
        shares = shares[shares > 0]
        places, spacing = np.arange(1, len(shares) + 1), max(1, len(shares) // 8)
        axes.plot(places, shares, label=f"{name} ({len(values)}-dim)", markevery=spacing, **sign(index))
    for size in sorted({len(values) for values in spectra.values()}):
        axes.plot([1, size], [1 / size, 1 / size], color=GREY, linestyle=":", linewidth=1, label="flat spectrum")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("singular value, from the largest")
    axes.set_ylabel("share of their sum")
    axes.grid()
    axes.legend(*legend_keys(axes))
    return figure


def _shares(values: np.ndarray) -> np.ndarray:
    falling = np.sort(values.astype(float))[::-1]
    shares: np.ndarray = falling / falling.sum()
    return shares


CAPTION_OF_GALLERY = (
    "Each row: an image of a class with a low MAP@R, then its nearest test images by the concatenated embeddings of "
    "run 1. Only the hardest classes are shown; they are not typical."
)
_KEY = "nearest neighbours first, hardest classes first\n✓ solid: class of the query   ✗ dashed: another class"
# From one image to the next; images have unit size.
_STEP_RIGHT, _STEP_DOWN = 1.15, 1.32
_RIGHT, _WRONG, _QUERY = (BLUE, "-", "✓"), (ORANGE, (0, (2.2, 1.4)), "✗"), (INK, "-", "")


@styled
def retrieval_gallery(data: FigureData, queries: int, neighbours: int) -> Figure:
    """Draw one row per query, hardest classes first: the query, then its neighbours.

    A neighbour of the query's class has a solid blue frame and a tick. Other neighbours have a dashed orange frame and
    a cross.

    Args:
        queries: Largest number of queries; likewise `neighbours` of each query.
    """
    rows, columns = min(len(data.query_images), queries), min(data.correct.shape[-1], neighbours)
    if not rows or not columns:
        raise FigureError("the gallery needs at least one query, and at least one neighbour of each query")
    figure = new_figure(0.9 + 1.14 * rows, width=0.9 + 0.95 * (1 + columns))
    _draw_rows(figure, data, rows, columns)
    figure.supxlabel(_KEY, fontsize=8)
    return figure


def _draw_rows(figure: Figure, data: FigureData, queries: int, neighbours: int) -> None:
    """Draw all rows in one coordinate system, since one per image would take seconds. An image has unit size."""
    axes = figure.subplots()
    axes.set(xlim=(-0.25, (neighbours + 1) * _STEP_RIGHT), ylim=(queries * _STEP_DOWN - 0.1, -0.25), aspect="equal")
    axes.set_axis_off()
    for column in range(neighbours + 1):
        axes.text(column * _STEP_RIGHT + 0.5, -0.1, str(column or "query"), ha="center", va="bottom", fontsize=8.5)
    for number, query in enumerate(np.argsort(data.class_scores[:queries], kind="stable")):
        down = number * _STEP_DOWN
        score = f"MAP@R {100 * data.class_scores[query]:.1f} %"
        axes.text(-0.1, down + 0.5, score, rotation=90, ha="right", va="center", fontsize=7.5)
        _show(axes, (0, down), data.query_images[query], str(data.class_names[query]), _QUERY)
        for rank in range(neighbours):
            look, name = _RIGHT if data.correct[query, rank] else _WRONG, str(data.neighbour_names[query, rank])
            _show(axes, ((rank + 1) * _STEP_RIGHT, down), data.neighbour_images[query, rank], name, look)


def _show(axes: Axes, corner: tuple[float, float], image: np.ndarray, name: str, look: tuple[str, Any, str]) -> None:
    colour, line, mark = look
    height, width = (length / max(image.shape[:2]) for length in image.shape[:2])
    left, top = corner[0] + (1 - width) / 2, corner[1] + (1 - height) / 2
    # `imshow` would set the limits and the aspect of the axes.
    limits = axes.get_xlim(), axes.get_ylim()
    plain = image[..., 0] if image.shape[-1] == 1 else image
    axes.imshow(plain, cmap="gray", vmin=0, vmax=255, extent=(left, left + width, top + height, top))
    axes.set(xlim=limits[0], ylim=limits[1])
    frame: Look = {"fill": False, "edgecolor": colour, "linewidth": 2.4, "linestyle": line, "capstyle": "butt"}
    axes.add_patch(Rectangle((left, top), width, height, **frame))
    axes.text(corner[0] + 0.5, top + height + 0.07, shortened(name, 13), ha="center", va="top", fontsize=7.5)
    if mark:
        box: Look = {"boxstyle": "circle,pad=0.12", "facecolor": colour, "edgecolor": "white", "linewidth": 0.8}
        text: Look = {"ha": "center", "va": "center", "color": "white", "fontsize": 8, "fontweight": "bold"}
        axes.text(left + 0.9 * width, top + 0.1 * height, mark, bbox=box, **text)
