"""Map of embeddings in the plane, by t-SNE."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.figure import Figure

from reports.figures.style import (
    COLOURS,
    MARKERS,
    PAGE_WIDTH,
    FigureError,
    Look,
    UndrawableError,
    legend_keys,
    new_figure,
    shortened,
    styled,
)

IMAGES_PER_CLASS = 30
"""Largest number of images of a test class in a map of test images on the page."""

CAPTION_OF_TEST_IMAGES = (
    f"Model of the first fold of run 1, up to {IMAGES_PER_CLASS} images of some test classes. Distances between groups "
    "have no meaning in t-SNE."
)
TSNE_NOTE = "t-SNE of cosine distances: only small distances have a meaning"

_NAMED, _KEY_COLUMNS, _LONGEST_NAME, _LINE = 21, 2, 20, 0.19
"""Most classes in a key, columns of the key, characters of a name in it, and height of its lines in inches."""

_EQUAL = 1e-9
"""Largest difference of unit vectors that count as equal."""

_STEPS = 500
"""Steps of t-SNE. On 13 maps of 180 to 480 points, each computed once, scikit-learn's 1,000 steps kept neighbours no
better: the trustworthiness of 10 neighbours differed by at most .004, on average by less than .001."""


def tsne_places(points: np.ndarray) -> np.ndarray:
    """Compute places in the plane (n x 2) of points (n x d) by t-SNE of cosine distances."""
    from sklearn.manifold import TSNE  # Takes long to import, and only a process that draws maps needs it.
    from threadpoolctl import threadpool_limits

    if len(points) < 4:
        raise FigureError(f"t-SNE needs at least four points, not {len(points)}")
    if not np.isfinite(points).all():
        raise UndrawableError("t-SNE needs finite embeddings; some are NaN or infinite")
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
        places: np.ndarray = projection.fit_transform(unit.astype(np.float64))
    return places


@styled
def embedding_map(places: np.ndarray, labels: np.ndarray, names: Sequence[str] = ()) -> Figure:
    """Draw a map with a key of its classes, if they are few.

    Args:
        places: Places of the images (n x 2).
        labels: Class of each image (n).
        names: Names of the classes for the key, in the order of their labels; without them the key has the labels.
    """
    classes = np.unique(labels).tolist()
    shown = [shortened(name, _LONGEST_NAME) for name in names] or list(map(str, classes))
    lines = ceil(len(classes) / _KEY_COLUMNS) + 1 if len(classes) <= _NAMED else 0
    figure = new_figure(PAGE_WIDTH + lines * _LINE, PAGE_WIDTH)
    axes = figure.add_subplot()
    for index, label in enumerate(classes):
        x, y = places[labels == label].T
        size = 14 if len(places) < 600 else 6
        axes.scatter(x, y, s=size, alpha=0.7, linewidths=0, label=shown[index], **class_look(index))
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    axes.spines[:].set_visible(True)
    axes.set_xlabel(f"{len(places)} images of {len(classes)} classes\n{TSNE_NOTE}")
    if lines:
        figure.legend(*legend_keys(axes), loc="outside lower center", ncols=_KEY_COLUMNS)
    return figure


def class_look(index: int) -> Look:
    """Return colour and marker of class number `index`. After each seven classes the markers shift by one."""
    turn, colour = divmod(index, len(COLOURS))
    return {"c": COLOURS[colour], "marker": MARKERS[(index + turn) % len(MARKERS)]}
