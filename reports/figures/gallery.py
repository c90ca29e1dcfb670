"""Retrieval gallery: queries with their nearest neighbours. Colour, line and sign show right and wrong ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Rectangle

from reports.figures.style import BLUE, INK, ORANGE, FigureError, Look, new_figure, styled
from results.records.artifacts import FigureData

_KEY = "nearest neighbours first, hardest classes first\n✓ solid: class of the query   ✗ dashed: another class"
# From one image to the next; images have unit size.
_STEP_RIGHT, _STEP_DOWN = 1.15, 1.32
_RIGHT, _WRONG = (BLUE, "-", "✓"), (ORANGE, (0, (2.2, 1.4)), "✗")


@dataclass(frozen=True)
class Neighbour:
    """A retrieved image.

    Attributes:
        image: uint8, height x width (grey) or height x width x 3.
    """

    image: np.ndarray
    class_name: str
    right: bool


@dataclass(frozen=True)
class Retrieval:
    """A query and its nearest neighbours.

    Attributes:
        class_score: Score of this class, a fraction of 1.
        neighbours: Nearest neighbours, nearest first.
    """

    image: np.ndarray
    class_name: str
    class_score: float
    neighbours: tuple[Neighbour, ...]


def hardest_first(retrievals: Sequence[Retrieval]) -> list[Retrieval]:
    """Sort by the score of the query's class, lowest first."""
    return sorted(retrievals, key=lambda retrieval: retrieval.class_score)


def retrievals_of(data: FigureData, queries: int | None = None, neighbours: int | None = None) -> list[Retrieval]:
    """Return the first retrievals of a run with their first neighbours, the hardest classes first. None takes all."""
    rows = []
    for query, image in list(enumerate(data.query_images))[:queries]:
        found = zip(data.neighbour_images[query], data.neighbour_names[query], data.correct[query], strict=True)
        nearest = [Neighbour(_plain(picture), str(name), bool(right)) for picture, name, right in found]
        name, score = str(data.class_names[query]), float(data.class_scores[query])
        rows.append(Retrieval(_plain(image), name, score, tuple(nearest[:neighbours])))
    return rows


def retrieval_gallery(retrievals: Sequence[Retrieval]) -> Figure:
    """Draw one gallery."""
    return galleries_side_by_side({"": retrievals})


@styled
def galleries_side_by_side(galleries: Mapping[str, Sequence[Retrieval]]) -> Figure:
    """Draw galleries beside each other, one row per query, hardest classes first: the query, then its neighbours.

    A neighbour of the query's class has a solid blue frame and a tick. Other neighbours have a dashed orange frame and
    a cross.
    """
    if (
        not galleries
        or not all(galleries.values())
        or not all(row.neighbours for rows in galleries.values() for row in rows)
    ):
        raise FigureError("the gallery needs at least one query, and at least one neighbour of each query")
    widths = [0.9 + 0.95 * _columns(retrievals) for retrievals in galleries.values()]
    figure = new_figure(0.9 + 1.14 * max(map(len, galleries.values())), width=sum(widths))
    parts = figure.subfigures(1, len(galleries), squeeze=False, width_ratios=widths)[0]
    for part, (title, retrievals) in zip(parts, galleries.items(), strict=True):
        _draw_rows(part, retrievals)
        part.suptitle(title, fontsize=9.5)
    figure.supxlabel(_KEY, fontsize=8)
    return figure


def _draw_rows(figure: SubFigure, retrievals: Sequence[Retrieval]) -> None:
    """Draw all rows in one coordinate system, since one per image would take seconds. An image has unit size."""
    rows, columns = hardest_first(retrievals), _columns(retrievals)
    axes = figure.subplots()
    axes.set(xlim=(-0.25, columns * _STEP_RIGHT), ylim=(len(rows) * _STEP_DOWN - 0.1, -0.25), aspect="equal")
    axes.set_axis_off()
    for column in range(columns):
        axes.text(column * _STEP_RIGHT + 0.5, -0.1, str(column or "query"), ha="center", va="bottom", fontsize=8.5)
    for number, row in enumerate(rows):
        down = number * _STEP_DOWN
        score = f"MAP@R {100 * row.class_score:.1f} %"
        axes.text(-0.1, down + 0.5, score, rotation=90, ha="right", va="center", fontsize=7.5)
        _show(axes, (0, down), row.image, row.class_name, (INK, "-", ""))
        for rank, neighbour in enumerate(row.neighbours, start=1):
            look = _RIGHT if neighbour.right else _WRONG
            _show(axes, (rank * _STEP_RIGHT, down), neighbour.image, neighbour.class_name, look)


def _columns(retrievals: Sequence[Retrieval]) -> int:
    return 1 + max(len(row.neighbours) for row in retrievals)


def _plain(image: np.ndarray) -> np.ndarray:
    return image[..., 0] if image.shape[-1] == 1 else image


def _show(axes: Axes, corner: tuple[float, float], image: np.ndarray, name: str, look: tuple[str, Any, str]) -> None:
    if image.dtype != np.uint8 or image.ndim not in (2, 3):
        raise FigureError(f"gallery images are uint8, height x width (x 3), not {image.dtype} of shape {image.shape}")
    colour, line, mark = look
    height, width = (length / max(image.shape[:2]) for length in image.shape[:2])
    left, top = corner[0] + (1 - width) / 2, corner[1] + (1 - height) / 2
    # `imshow` would set the limits and the aspect of the axes.
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(image, cmap="gray", vmin=0, vmax=255, extent=(left, left + width, top + height, top))
    axes.set(xlim=limits[0], ylim=limits[1])
    frame: Look = {"fill": False, "edgecolor": colour, "linewidth": 2.4, "linestyle": line, "capstyle": "butt"}
    axes.add_patch(Rectangle((left, top), width, height, **frame))
    axes.text(corner[0] + 0.5, top + height + 0.07, _short(name), ha="center", va="top", fontsize=7.5)
    if mark:
        box: Look = {"boxstyle": "circle,pad=0.12", "facecolor": colour, "edgecolor": "white", "linewidth": 0.8}
        text: Look = {"ha": "center", "va": "center", "color": "white", "fontsize": 8, "fontweight": "bold"}
        axes.text(left + 0.9 * width, top + 0.1 * height, mark, bbox=box, **text)


def _short(name: str) -> str:
    return name if len(name) <= 13 else name[:12] + "…"
