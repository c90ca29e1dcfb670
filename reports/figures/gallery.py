"""Retrieval gallery: queries with their nearest neighbours. Colour, line and sign show right and wrong ones."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from reports.figures.style import BLUE, INK, ORANGE, FigureError, Look, new_figure, shortened, styled
from results.records.artifacts import FigureData

CAPTION = (
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
