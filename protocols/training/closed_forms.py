"""Embedders in closed form over the features of the training images: rivals without a loss, or starts of a training.

With the mean m and the covariance S of the features, and the mean S_w of the classes' covariances weighted by images,
the embedder computes `W (f - m)` of features f. A covariance C of c dimensions is shrunk by s to
`(1 - s) C + s tr(C) / c I` before it is inverted, so that fewer images than dimensions are enough.

- `pca`: the rows of W are the eigenvectors of S with the largest eigenvalues. They have unit length. It is our reading
  of the row "Pretrained" of A Metric Learning Reality Check: no source says how features become embeddings there.
- `whitened_pca`: these components, divided by their deviations in the shrunk S.
- `within_class_whitening`: f becomes `S_w^(-1/2) (f - m)` with the shrunk S_w, and is then projected on its principal
  components (relevant component analysis, Shental et al., ECCV 2002; WCCN, Hatch et al., Interspeech 2006).
- `lda`: the same, with the principal components of the class means in place of those of the images (Fisher 1936, Rao
  1948).

All are computed in float64 on the CPU. The largest component comes first, and the entry of largest magnitude of each
row of W is positive.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from protocols.datasets.splits import classes_of
from protocols.training.build_method import RefusedError, refusals
from protocols.trunks.embedding_model import embedding_size_of
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import EmbedderSpec

Matrix = NDArray[np.float64]

_CHUNK = 2**24
"""Number of features that are in memory as float64 at once."""

_SINGULAR = "a covariance of so few images has no inverse; set a shrinkage above 0"

_KEPT = 8
"""Number of embedders that a process keeps: those of the four folds of two experiments."""

_FITTED: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}
"""The last embedders that this process has computed, by all that decides them."""


def set_to_closed_form(
    embedder: nn.Module, spec: FoldSpec, features: Iterable[Tensor], classes: NDArray[np.int64]
) -> None:
    """Set a linear layer to the closed form that a training asks for.

    Args:
        embedder: A linear layer with bias, (c) to (d).
        spec: The training. Its embedder is computed.
        features: What the embedder gets of the training images, in parts (k, c).
        classes: Classes of the images (n,), as 0..C-1.

    Raises:
        RefusedError: The images, features or classes are too few.
    """
    assert isinstance(embedder, nn.Linear)
    most, limit = most_dimensions(spec, len(classes), embedder.in_features)
    if embedder.out_features > most:
        raise RefusedError(
            f"{limit}, fewer than the {embedder.out_features} dimensions that are asked; use a smaller embedding_size"
        )
    conditions = spec.conditions
    inputs = spec.data_fingerprint, classes_of(spec).train, conditions.trunk, conditions.images
    # All trainings on the features of one fold of a frozen trunk need the same embedder.
    name = (*inputs, spec.embedder, embedder.out_features) if conditions.trunk.is_input_features else ()
    if name not in _FITTED or not name:
        with refusals(f"embedder: init: {spec.embedder.init}"):
            fitted = projection(spec.embedder, scatter_of(features, classes), embedder.out_features)
        if len(_FITTED) == _KEPT:
            _FITTED.pop(next(iter(_FITTED)))
        _FITTED[name] = fitted
    weight, bias = _FITTED[name]
    with torch.no_grad():
        embedder.weight.copy_(weight)
        embedder.bias.copy_(bias)


def most_dimensions(spec: FoldSpec, images: int, width: int, samples: str = "images") -> tuple[int, str]:
    """Return the largest size of an embedder in closed form, and what limits it, in words.

    Args:
        images: Number of training images.
        width: Number of features of an image.
        samples: What the messages call images.
    """
    few, limit, classes = f"there are only {width} features", width, len(classes_of(spec).train)
    if spec.embedder.init == "lda" and classes <= limit:
        limit = classes - 1
        few = f"a fold has only {classes} training classes, which have at most {limit} discriminants"
    # The centred features of n images span at most n - 1 directions. A shrunk covariance has others too.
    elif images <= limit and not (spec.embedder.shrinkage and embedding_size_of(spec) == width):
        limit = images - 1
        few = f"a fold has only {images} training {samples}, which have at most {limit} principal components"
    return limit, few


def reduced_by_themselves(embeddings: Tensor, dimensions: int) -> Tensor:
    """Project embeddings on their own principal components, as the testers of pytorch-metric-learning do with `pca`.

    Each dimension is standardised before. The components know the embeddings that are then evaluated.

    Args:
        embeddings: (n, c).
        dimensions: Number of components d.

    Returns:
        (n, d), in the dtype of the embeddings.
    """
    spread = embeddings.std(0)
    standard = (embeddings - embeddings.mean(0)) / torch.where(spread > 0, spread, 1)
    scatter = scatter_of([standard], np.zeros(len(standard), dtype=np.int64))
    weight, bias = projection(EmbedderSpec(init="pca"), scatter, dimensions)
    return (standard.double() @ weight.T.to(standard.device) + bias.to(standard.device)).to(embeddings.dtype)


@dataclass(frozen=True)
class Scatter:
    """Sums over the features (n, c) of n images.

    Attributes:
        images: Their number n.
        mean: Mean of the features, (c,).
        total: Sum of `(f - m) (f - m)^T`, (c, c).
        means: Deviations of the class means from m, each times the root of its class's images, (classes, c). Their
            sum of squares is the scatter between classes, which `total` has beside that within them.
    """

    images: int
    mean: Matrix
    total: Matrix
    means: Matrix


def scatter_of(parts: Iterable[Tensor], classes: NDArray[np.int64]) -> Scatter:
    """Sum up features that come in parts, (k, c) each; `classes` (n,) are those of all images, as 0..C-1."""
    counts, first = np.bincount(classes)[:, None], 0
    total, summed, of_classes = (np.zeros(1) for _ in range(3))
    for rows in (rows for part in parts for rows in part.split(max(1, _CHUNK // part.shape[1]))):
        values = rows.cpu().double()
        here = torch.from_numpy(classes[first : first + len(rows)])
        sums = torch.zeros(len(counts), rows.shape[1], dtype=torch.float64).index_add(0, here, values)
        of_classes, summed = of_classes + sums.numpy(), summed + values.numpy().sum(0)
        total = total + values.numpy().T @ values.numpy()
        first += len(rows)
    mean = summed / first
    total -= first * mean[:, None] * mean
    return Scatter(first, mean, total, of_classes / np.sqrt(counts) - np.sqrt(counts) * mean)


def projection(embedder: EmbedderSpec, scatter: Scatter, size: int) -> tuple[Tensor, Tensor]:
    """Return weight W (size, c) and bias -W m (size,) of an embedder, in float64."""
    of_images = scatter.total / (scatter.images - 1)
    if embedder.init in ("pca", "whitened_pca"):
        values, vectors = np.linalg.eigh(of_images)
        weight = _signed(np.flip(vectors, 1).T[:size])
        if embedder.shrinkage is not None:
            shrunk = (1 - embedder.shrinkage) * np.flip(values)[:size] + embedder.shrinkage * values.mean()
            if not shrunk[-1] > np.finfo(float).eps * len(values) * shrunk[0]:
                raise np.linalg.LinAlgError(_SINGULAR)
            weight = weight / np.sqrt(shrunk)[:, None]
    else:
        if embedder.shrinkage == 0 and scatter.images - len(scatter.means) < len(scatter.mean):
            raise np.linalg.LinAlgError(_SINGULAR)
        between = scatter.means.T @ scatter.means
        within = (scatter.total - between) / scatter.images
        weight = _whitened(within, between if embedder.init == "lda" else of_images, embedder.shrinkage or 0.0, size)
    rows = torch.from_numpy(weight)
    return rows, -rows @ torch.from_numpy(scatter.mean)


def _whitened(within: Matrix, spread: Matrix, shrinkage: float, size: int) -> Matrix:
    """Whiten by a shrunk covariance; of the whitened space take the directions in which there is most spread."""
    from scipy import linalg  # Imported here, because most trainings do not need it.

    width = len(within)
    shrunk = (1 - shrinkage) * within
    shrunk[np.diag_indices(width)] += shrinkage * np.trace(within) / width
    # Any root of the inverse gives the same components; that of Cholesky is the fastest.
    root = linalg.cholesky(shrunk, lower=True, overwrite_a=True, check_finite=False)
    half = linalg.solve_triangular(root, spread, lower=True, check_finite=False)
    whitened = linalg.solve_triangular(root, half.T, lower=True, overwrite_b=True, check_finite=False)
    _, vectors = linalg.eigh(whitened, subset_by_index=(width - size, width - 1), overwrite_a=True, check_finite=False)
    rows = linalg.solve_triangular(root, np.flip(vectors, 1), lower=True, trans="T", check_finite=False)
    return _signed(rows.T)


def _signed(rows: Matrix) -> Matrix:
    largest = np.abs(rows).argmax(axis=1)
    signed: Matrix = rows * np.sign(rows[np.arange(len(rows)), largest])[:, None]
    return signed
