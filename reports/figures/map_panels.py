"""Figure of several maps of embeddings side by side, with proxies (Proxy-ISA, Fig. 2 and 6; CCP, Fig. 1 and 2)."""

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from reports.figures.embedding_map import class_colour, class_look, draw_proxies, proxy_look, tsne_places
from reports.figures.style import GREY, INK, FigureError, Look, new_figure, styled

MARKED = 25
"""Largest number of classes that have their own pairs of colour and marker. More pairs cannot be told apart."""

_NAVY = "#00175a"
_PROXY = 30.0
_RASTER = 1500
_GOLDEN = 0.618033988749895


def _none() -> np.ndarray:
    return np.empty((0, 2))


@dataclass(frozen=True)
class MapPanel:
    """One map.

    Attributes:
        places: Places of the images, n x 2.
        labels: Class of each image, n.
        proxy_places: Places of the proxies, p x 2.
        proxy_labels: Class of each proxy, p.
        next_places: Places of the proxies of CCP's next problem, p x 2, of the same classes.
    """

    title: str
    places: np.ndarray
    labels: np.ndarray
    proxy_places: np.ndarray = field(default_factory=_none)
    proxy_labels: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    next_places: np.ndarray = field(default_factory=_none)


def tsne_panel(
    title: str,
    embeddings: np.ndarray,
    labels: np.ndarray,
    proxies: np.ndarray | None = None,
    proxy_labels: np.ndarray | None = None,
) -> MapPanel:
    """Make a panel whose places are those of t-SNE, together for images and proxies."""
    if proxies is None or proxy_labels is None or not len(proxies):
        return MapPanel(title, tsne_places(embeddings)[0], labels)
    images, stars = tsne_places(embeddings, proxies)
    return MapPanel(title, images, labels, stars, proxy_labels)


@styled
def map_panels(panels: Sequence[MapPanel], columns: int, note: str = "", *, unit_disk: bool = False) -> Figure:
    """Draw the maps with one key.

    Up to `MARKED` classes, a class has its own colour and marker, and its proxies are larger signs of both with a dark
    outline. A line joins a proxy with that of the next problem. With more classes, colours nearly repeat, and all
    proxies are navy blue stars.

    Args:
        unit_disk: Whether the places are the embeddings themselves, which lie in the unit disk. It is then drawn.
    """
    if not panels or not all(len(panel.places) for panel in panels):
        raise FigureError("the figure needs at least one map, and at least one image in each map")
    for panel in panels:
        if len(panel.places) != len(panel.labels) or len(panel.proxy_places) != len(panel.proxy_labels):
            raise FigureError(f"map {panel.title!r}: needs one label per image and per proxy")
    rows = ceil(len(panels) / columns)
    side = min(3.4, 11.0 / columns)
    figure = new_figure(0.7 + (side + 0.35) * rows, width=side * min(columns, len(panels)))
    grid = figure.subplots(rows, min(columns, len(panels)), squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        _draw(axes, panel, unit_disk=unit_disk)
    for empty in grid[len(panels) :]:
        empty.set_axis_off()
    _add_key(figure, panels)
    figure.supxlabel(note, fontsize=8)
    return figure


def _draw(axes: Axes, panel: MapPanel, *, unit_disk: bool) -> None:
    if unit_disk:
        axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=GREY, linewidth=0.8, linestyle=":"))
        axes.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06))
    classes = np.unique(panel.labels)
    few = len(classes) <= MARKED
    # Large maps become one picture inside the SVG, which would be slow otherwise.
    look: Look = {"s": _size(panel), "rasterized": len(panel.places) > _RASTER}
    if few:
        for index, label in enumerate(classes):
            x, y = panel.places[panel.labels == label].T
            axes.scatter(x, y, alpha=0.6, **class_look(index), **look)
    else:
        colours = _many_colours(len(classes))[np.searchsorted(classes, panel.labels)]
        axes.scatter(panel.places[:, 0], panel.places[:, 1], c=colours, marker="o", alpha=0.7, linewidths=0, **look)
    _draw_proxies(axes, panel, classes, few=few)
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="box" if unit_disk else "datalim")
    axes.spines[:].set_visible(True)
    axes.set_title(panel.title, loc="left", fontsize=8.5)


def _draw_proxies(axes: Axes, panel: MapPanel, classes: np.ndarray, *, few: bool) -> None:
    x, y = panel.proxy_places.T
    if not few:
        axes.scatter(x, y, **_star())
        return
    draw_proxies(axes, panel.proxy_places, panel.proxy_labels, classes, _PROXY)
    if len(panel.next_places):
        colour_of = {label: class_colour(index) for index, label in enumerate(classes.tolist())}
        colours = [colour_of.get(label, GREY) for label in panel.proxy_labels.tolist()]
        for start, end in zip(panel.proxy_places, panel.next_places, strict=True):
            axes.plot(*zip(start, end, strict=True), color=GREY, linewidth=0.7, zorder=2.9)
        x, y = panel.next_places.T
        axes.scatter(x, y, facecolors="none", edgecolors=colours, **_ring())


def _add_key(figure: Figure, panels: Sequence[MapPanel]) -> None:
    few = all(len(np.unique(panel.labels)) <= MARKED for panel in panels)
    # The key's signs are drawn in an axes without data, so they take no colour of a class.
    axes = figure.axes[0]
    signs = []
    if any(len(panel.proxy_places) for panel in panels):
        look = proxy_look(None, _PROXY) if few else _star()
        name = "proxy, in the sign of its class" if few else "proxy"
        signs.append((axes.scatter([], [], **look), name))
    if any(len(panel.next_places) for panel in panels):
        signs.append((axes.scatter([], [], facecolors="none", edgecolors=INK, **_ring()), "proxy of the next problem"))
    if signs:
        handles, names = zip(*signs, strict=True)
        figure.legend(handles, names, loc="outside upper right", ncols=len(signs))


def _star() -> Look:
    return {"marker": "*", "s": 44, "c": _NAVY, "edgecolors": "white", "linewidths": 0.25, "zorder": 3}


def _ring() -> Look:
    return {"marker": "o", "s": 42, "linewidths": 1.4, "zorder": 4}


def _size(panel: MapPanel) -> float:
    count = len(panel.places)
    return 14 if count < 300 else 6 if count < 1500 else 2.5


def _many_colours(count: int) -> np.ndarray:
    return np.array(
        [colorsys.hls_to_rgb(index * _GOLDEN % 1, 0.42 + 0.2 * (index % 2), 0.75) for index in range(count)]
    )
