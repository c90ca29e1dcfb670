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
row of W is positive. Nothing is divided by a deviation that is only the rounding of float32 features: a covariance with
such a direction is refused.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from protocols.datasets.splits import classes_of
from protocols.training.build_method import RefusedError
from protocols.trunks.embedding_model import embedding_size_of
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import EmbedderSpec
from results.wording import counted

Matrix = NDArray[np.float64]

_KEPT = 8
"""Number of embedders that a process keeps: those of the four folds of two experiments."""

_FITTED: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}
"""The last embedders that this process has computed of features, by all that decides them."""


def set_to_closed_form(
    embedder: nn.Module, spec: FoldSpec, features: Iterable[Tensor], classes: NDArray[np.int64]
) -> None:
    """Set a linear layer to the closed form that a training asks for.

    Args:
        embedder: A linear layer with bias, (c) to (d), with d at most `most_dimensions`.
        spec: The training. Its embedder is computed.
        features: What the embedder gets of the training images, in parts (k, c).
        classes: Classes of the images (n,), as 0..C-1.

    Raises:
        RefusedError: A covariance has no inverse.
    """
    assert isinstance(embedder, nn.Linear)
    given = spec.conditions
    inputs = spec.data_fingerprint, classes_of(spec).train, given.trunk, given.images
    # All trainings on the features of one fold of a frozen trunk need the same embedder.
    name = (*inputs, spec.embedder, embedder.out_features) if given.trunk.is_input_features else ()
    if name not in _FITTED or not name:
        if len(_FITTED) == _KEPT:
            _FITTED.pop(next(iter(_FITTED)))
        _FITTED[name] = projection(spec.embedder, scatter_of(features, classes), embedder.out_features)
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
    classes = len(classes_of(spec).train)
    if spec.embedder.init == "lda" and classes <= width:
        few = f"a fold has only {counted(classes, 'training class')}, so at most {counted(classes - 1, 'discriminant')}"
        return classes - 1, few
    # The centred features of n images span at most n - 1 directions. A shrunk covariance has others too.
    if images <= width and not (spec.embedder.shrinkage and embedding_size_of(spec) == width):
        few = f"a fold has only {images} training {samples}, which have at most {images - 1} principal components"
        return images - 1, few
    return width, f"there are only {width} features"


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


class Scatter(NamedTuple):
    """Sums over the features (n, c) of n images.

    Attributes:
        images: Their number n.
        mean: Mean m of the features, (c,).
        total: Sum of `(f - m) (f - m)^T`, (c, c).
        between: The same sum with the mean of the class in place of f.
    """

    images: int
    mean: Matrix
    total: Matrix
    between: Matrix


def scatter_of(parts: Iterable[Tensor], classes: NDArray[np.int64]) -> Scatter:
    """Sum up features that come in parts, (k, c) each; `classes` (n,) are those of all images, as 0..C-1."""
    roots, first = np.sqrt(np.bincount(classes))[:, None], 0
    total, summed, of_classes = (np.zeros(1) for _ in range(3))
    for part in parts:
        rows = part.cpu().double()
        here = torch.from_numpy(classes[first : first + len(rows)])
        sums = torch.zeros(len(roots), rows.shape[1], dtype=torch.float64).index_add(0, here, rows)
        of_classes, summed = of_classes + sums.numpy(), summed + rows.numpy().sum(0)
        total = total + rows.numpy().T @ rows.numpy()
        first += len(rows)
    mean = summed / first
    total -= first * mean[:, None] * mean
    deviations = of_classes / roots - roots * mean
    return Scatter(first, mean, total, deviations.T @ deviations)


def projection(embedder: EmbedderSpec, scatter: Scatter, size: int) -> tuple[Tensor, Tensor]:
    """Return weight W (size, c) and bias -W m (size,) of an embedder, in float64."""
    images, mean, total, between = scatter
    shrinkage, rounding = embedder.shrinkage or 0.0, _rounding(scatter)
    if embedder.init in ("pca", "whitened_pca"):
        values, vectors = np.linalg.eigh(total / (images - 1))
        if embedder.init == "whitened_pca":
            shrunk = ((1 - shrinkage) * values + shrinkage * values.mean())[-size:]
            _check_invertible(shrunk, values.mean(), rounding, "of the features")
            vectors = vectors[:, -size:] / np.sqrt(shrunk)
    else:
        spread = between if embedder.init == "lda" else total
        vectors = _whitened((total - between) / images, spread, shrinkage, size, rounding)
    rows = np.flip(vectors, 1).T[:size]
    rows = rows * np.sign(np.take_along_axis(rows, np.abs(rows).argmax(1, keepdims=True), 1))
    weight = torch.from_numpy(rows)
    return weight, -weight @ torch.from_numpy(mean)


def _rounding(scatter: Scatter) -> float:
    """Return the variance in a direction that the rounding of float32 features can make of none.

    It is the square of float32's resolution of the length of the features.
    """
    length = np.trace(scatter.total) / scatter.images + np.sum(scatter.mean**2)
    return float(np.finfo(np.float32).eps ** 2 * length)


def _check_invertible(shrunk: Matrix, variance: float, rounding: float, whose: str) -> None:
    """Refuse a shrunk covariance that has a direction without variance.

    Args:
        shrunk: Its eigenvalues, as far as something is divided by them.
        variance: Mean of all eigenvalues, which the largest shrinkage sets them to.
        rounding: Variance that counts as none.
        whose: What the covariance is of, in words.
    """
    if variance <= rounding:
        raise RefusedError(f"the covariance {whose} is zero: there is no variance, and no embedder.shrinkage helps")
    if shrunk.min() <= rounding:
        raise RefusedError(f"the covariance {whose} has no inverse; set a larger embedder.shrinkage")


def _whitened(within: Matrix, spread: Matrix, shrinkage: float, size: int, rounding: float) -> Matrix:
    """Return the directions (c, size or c) in which there is most spread after whitening by a covariance, that last."""
    from scipy import linalg  # Imported here, because most trainings do not need it.

    width = len(within)
    variance = float(np.trace(within)) / width
    shrunk = (1 - shrinkage) * within + shrinkage * np.trace(within) / width * np.eye(width)
    # No eigenvalue is smaller than what is added, so that most need not be computed.
    least = shrinkage * variance
    values = np.array([least]) if least > rounding else linalg.eigvalsh(shrunk, subset_by_index=(0, 0))
    _check_invertible(values, variance, rounding, "within the classes")
    few = (width - size, width - 1) if 4 * size < width else None  # Many are found faster together with the others.
    vectors: Matrix = linalg.eigh(spread, shrunk, subset_by_index=few, overwrite_b=True, check_finite=False)[1]
    return vectors
