"""Heat map of the cosine similarity between images and proxies (as in Proxy-ISA, Fig. 7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from reports.figures.style import SEQUENTIAL, FigureError, Look, new_figure, styled

FRAMED = 30
"""Largest number of classes that get frames. With more classes the frames would hide the values."""


@dataclass(frozen=True)
class SimilarityPanel:
    """Embeddings and proxies of one model.

    Attributes:
        embeddings: Embeddings of images, n x d.
        labels: Class of each image, n.
        proxies: Proxies, p x d.
        proxy_labels: Class of each proxy, p.
    """

    title: str
    embeddings: np.ndarray
    labels: np.ndarray
    proxies: np.ndarray
    proxy_labels: np.ndarray

    def __post_init__(self) -> None:
        if self.embeddings.shape[:1] != self.labels.shape or self.proxies.shape[:1] != self.proxy_labels.shape:
            raise FigureError(f"heat map {self.title!r}: needs one label per embedding and per proxy")

    @property
    def similarities(self) -> np.ndarray:
        """Cosines (n x p). Rows and columns are sorted by class; the order within a class is kept."""
        rows = np.argsort(self.labels, kind="stable")
        columns = np.argsort(self.proxy_labels, kind="stable")
        cosines: np.ndarray = _unit(self.embeddings)[rows] @ _unit(self.proxies)[columns].T
        return cosines


@styled
def similarity_heat_map(panels: Sequence[SimilarityPanel], columns: int) -> Figure:
    """Draw one heat map per model with one colour scale.

    Up to `FRAMED` classes, frames show the pairs of image and proxy of the same class.

    Args:
        columns: Number of heat maps in a row, which are filled row by row.
    """
    if not panels:
        raise FigureError("the heat map needs at least one panel")
    columns = min(columns, len(panels))
    rows = ceil(len(panels) / columns)
    figure = new_figure(0.6 + 2.8 * rows, width=1.0 + 2.8 * columns)
    grid = figure.subplots(rows, columns, squeeze=False)
    images = [_draw(axes, panel) for axes, panel in zip(grid.ravel(), panels, strict=False)]
    for empty in grid.ravel()[len(panels) :]:
        empty.set_axis_off()
    if rows > 1:
        for axes in grid.ravel():
            axes.label_outer()
    figure.colorbar(images[0], ax=figure.axes, label="cosine similarity", shrink=0.85 / rows**0.5, pad=0.02)
    return figure


def _draw(axes: Axes, panel: SimilarityPanel) -> AxesImage:
    cosines = panel.similarities
    look: Look = {"vmin": -1.0, "vmax": 1.0, "interpolation": "nearest", "aspect": "auto"}
    image = axes.imshow(cosines, cmap=SEQUENTIAL, **look)
    blocks = _blocks(panel)
    if len(blocks) <= FRAMED:
        for top, height, left, width in blocks:
            axes.add_patch(
                Rectangle((left - 0.5, top - 0.5), width, height, fill=False, edgecolor="white", linewidth=0.6)
            )
    axes.set_title(panel.title, loc="left", fontsize=9)
    axes.set_xlabel(f"proxy, by class (n = {cosines.shape[1]})")
    axes.set_ylabel(f"image, by class (n = {cosines.shape[0]})")
    axes.set(xticks=[], yticks=[])
    return image


def _blocks(panel: SimilarityPanel) -> list[tuple[int, int, int, int]]:
    """Top, height, left and width of the pairs of each class."""
    rows, columns, blocks = np.sort(panel.labels), np.sort(panel.proxy_labels), []
    for label in np.intersect1d(rows, columns):
        top, left = int(np.searchsorted(rows, label)), int(np.searchsorted(columns, label))
        blocks.append((top, int((rows == label).sum()), left, int((columns == label).sum())))
    return blocks


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: np.ndarray = rows / np.where(lengths > 0, lengths, 1)
    return unit
