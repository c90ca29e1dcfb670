"""Figure of embeddings and proxies in the plane by t-SNE (as in Proxy-ISA, Fig. 2 and 6)."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from reports.figures.names_in_text import is_drawable
from reports.figures.style import (
    COLOURS,
    INK,
    MARKERS,
    PAGE_WIDTH,
    FigureError,
    Look,
    UndrawableError,
    new_figure,
    styled,
)

IMAGES_PER_CLASS = 30
"""Largest number of images of a test class in a map of test images on the page."""

CAPTION_OF_TEST_IMAGES = (
    f"Model of the first fold of run 0, up to {IMAGES_PER_CLASS} images of some test classes. Distances between groups "
    "have no meaning in t-SNE."
)
CAPTION_OF_PROXIES = (
    "Model of the first fold of run 0, a few images of some training classes. A proxy is a larger sign with a dark "
    "outline, in the shape and the colour of its class."
)
NAMED = 21
"""Largest number of classes for which the figure has a key. With more classes a key does not help."""

_KEY_COLUMNS, _LONGEST_NAME, _LINE = 2, 24, 0.19
"""Columns of the key, characters of a name in it, and height of its lines in inches."""

_RASTER = 1500
_EQUAL = 1e-9
"""Largest difference of unit vectors that count as equal."""

_STEPS = 500
"""Steps of t-SNE. On 13 maps of 180 to 480 points, each computed once, scikit-learn's 1,000 steps kept neighbours no
better: the trustworthiness of 10 neighbours differed by at most .004, on average by less than .001."""

_WARNING = "t-SNE of cosine distances: only small distances have a meaning"


def tsne_places(embeddings: np.ndarray, proxies: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Compute places in the plane by t-SNE of cosine distances, together for embeddings and proxies.

    Args:
        embeddings: n x d.
        proxies: p x d, or None.

    Returns:
        Places of the embeddings (n x 2) and of the proxies (p x 2).
    """
    from sklearn.manifold import TSNE  # Takes long to import, and only a process that draws maps needs it.
    from threadpoolctl import threadpool_limits

    points = embeddings if proxies is None else np.concatenate([embeddings, proxies])
    if len(points) < 4:
        raise FigureError(f"t-SNE needs at least four points, not {len(points)}")
    if not np.isfinite(points).all():
        raise UndrawableError("t-SNE needs finite embeddings and proxies; some are NaN or infinite")
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    unit = points / np.where(lengths > 0, lengths, 1)
    if np.ptp(unit, axis=0).max() < _EQUAL:
        # scikit-learn's t-SNE divides by the width of these points, which is 0, and ends the whole process.
        raise UndrawableError("all embeddings are equal: the model has collapsed, and t-SNE has nothing to spread out")
    # For unit vectors the squared Euclidean distance is twice the cosine distance, so TSNE can start from PCA.
    perplexity = min(30.0, (len(points) - 1) / 3)
    projection = TSNE(perplexity=perplexity, init="pca", random_state=0, n_jobs=1, max_iter=_STEPS)
    # Threads wait for one another in each of hundreds of short steps: for minutes if other work needs the cores.
    with threadpool_limits(limits=1):
        places = projection.fit_transform(unit.astype(np.float64))
    return places[: len(embeddings)], places[len(embeddings) :]


@styled
def embedding_map(
    places: np.ndarray,
    labels: np.ndarray,
    proxy_places: np.ndarray | None = None,
    proxy_labels: np.ndarray | None = None,
    names: Sequence[str] = (),
) -> Figure:
    """Draw points with marker and colour by class, and proxies as larger, outlined signs of their class.

    The figure has no axes, because only small distances have a meaning in t-SNE.

    Args:
        places: Places of the images, n x 2.
        labels: Class of each image, n.
        proxy_places: Places of the proxies, p x 2.
        proxy_labels: Class of each proxy, p. A proxy without class, or whose class has no image, is a white star.
        names: Names of the classes for the key, in the order of their labels; without them the key has the labels.
    """
    if len(places) != len(labels) or not len(places):
        raise FigureError(f"the embedding map needs one label per point, not {len(labels)} for {len(places)}")
    classes = np.unique(labels)
    stars = np.empty((0, 2)) if proxy_places is None else proxy_places
    named = len(classes) <= NAMED
    lines = ceil(len(classes) / _KEY_COLUMNS) + 1 if named else 0
    figure = new_figure(PAGE_WIDTH + lines * _LINE, PAGE_WIDTH)
    axes = figure.add_subplot()
    _draw_images(axes, places, labels, [_short(name) for name in names] or [str(label) for label in classes])
    if len(stars):
        draw_proxies(axes, stars, proxy_labels, classes, 80)
        axes.scatter([], [], label="proxy, in the sign of its class", **proxy_look(None, 80))
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    axes.spines[:].set_visible(True)
    axes.set_xlabel(f"{_counted(places, classes, stars)}\n{_WARNING}")
    handles, keys = axes.get_legend_handles_labels()
    if named:
        figure.legend(handles, keys, loc="outside lower center", ncols=_KEY_COLUMNS, markerscale=1.3)
    elif len(stars):
        figure.legend(handles[-1:], keys[-1:], loc="outside upper right")
    return figure


def _draw_images(axes: Axes, places: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> None:
    size = 16 if len(places) < 600 else 9
    look: Look = {"s": size, "alpha": 0.75, "rasterized": len(places) > _RASTER}
    for index, label in enumerate(np.unique(labels)):
        points = places[labels == label]
        axes.scatter(
            points[:, 0],
            points[:, 1],
            label=names[index],
            **class_look(index),
            **look,
        )


def _short(name: str) -> str:
    """Leave out the middle of a name that would make the key wider than the figure, unless it becomes a number."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME or not is_drawable(name) else f"{name[: half - 1]}…{name[-half:]}"


def draw_proxies(
    axes: Axes, places: np.ndarray, proxy_labels: np.ndarray | None, classes: np.ndarray, size: float
) -> None:
    """Draw proxies as signs with a dark outline, in the marker and the colour of their class.

    Args:
        proxy_labels: Class of each proxy, p; None without classes.
        size: Area of a sign in square points.
    """
    numbers = {label: index for index, label in enumerate(classes.tolist())}
    indices = [None] * len(places) if proxy_labels is None else [numbers.get(label) for label in proxy_labels.tolist()]
    for index in dict.fromkeys(indices):
        points = places[[other == index for other in indices]]
        axes.scatter(points[:, 0], points[:, 1], **proxy_look(index, size))


def proxy_look(index: int | None, size: float) -> Look:
    """Return the look of a proxy of class number `index`, with its area in square points. None is a white star."""
    edge = "white" if index is None else class_colour(index)
    hollow = index is None or index // len(COLOURS) % 2 == 1
    return {
        "marker": "*" if index is None else class_marker(index),
        "s": size,
        "facecolors": "white" if hollow else edge,
        "edgecolors": edge,
        "linewidths": 1.6,
        "path_effects": [withStroke(linewidth=3.6, foreground=INK)],
        "zorder": 3,
    }


def _counted(places: np.ndarray, classes: np.ndarray, stars: np.ndarray) -> str:
    repeats = "" if len(classes) <= len(COLOURS) * len(MARKERS) else ", markers repeat"
    proxies = f", {len(stars)} proxies" if len(stars) else ""
    return f"{len(places)} images of {len(classes)} classes{repeats}{proxies}"


def class_colour(index: int) -> str:
    """Return the colour of class number `index`; it repeats after seven classes."""
    return COLOURS[index % len(COLOURS)]


def class_marker(index: int) -> str:
    """Return the marker of class number `index`."""
    # After each seven classes the markers shift by one, so pairs of colour and marker repeat only after 49 classes.
    return MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]


def class_look(index: int) -> Look:
    """Return colour and marker of class number `index`. Every second seven classes are hollow: 14 differ in grey."""
    colour, hollow = class_colour(index), index // len(COLOURS) % 2 == 1
    faces = {"facecolors": "none", "edgecolors": colour} if hollow else {"color": colour}
    return {**faces, "marker": class_marker(index), "linewidths": 0.9 if hollow else 0}


def alternative_text(places: np.ndarray, labels: np.ndarray) -> str:
    """Describe how well the classes are apart in a map of test images."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    right = float(np.mean(labels[distances.argmin(axis=1)] == labels))
    return (
        f"t-SNE of {len(places)} embeddings of {len(np.unique(labels))} test classes. For {100 * right:.0f} % of the "
        "points the nearest point is of the same class."
    )


def alternative_text_with_proxies(
    places: np.ndarray, labels: np.ndarray, stars: np.ndarray, star_labels: np.ndarray
) -> str:
    """Describe how many images lie nearest to a proxy of their class."""
    distances = np.linalg.norm(places[:, None] - stars[None], axis=2)
    right = float(np.mean(star_labels[distances.argmin(axis=1)] == labels))
    return (
        f"t-SNE of {len(places)} training images of {len(np.unique(labels))} classes with {len(stars)} proxies. For "
        f"{100 * right:.0f} % of the images the nearest proxy is of the same class."
    )
