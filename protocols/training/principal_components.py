"""Principal components of features, as an embedder that nothing trains or as the start of a training."""

import hashlib

import torch
from torch import Tensor, nn

from protocols.training.build_method import RefusedError

_KEPT = 8
"""Number of projections that a process keeps: those of the four folds of two experiments."""

_FITTED: dict[tuple[str, tuple[int, ...], int], tuple[Tensor, Tensor]] = {}
"""The last projections that this process has computed, by the hash and the shape of the features and their number."""


def set_to_principal_components(embedder: nn.Module, features: Tensor) -> None:
    """Set a linear layer to the projection on the principal components of features.

    With the mean m of the features f, the layer computes `W (f - m)`. The rows of W are the eigenvectors of the
    features' covariance with the largest eigenvalues, the largest first. They have unit length, and their entry of
    largest magnitude is positive. They are computed in float64 on the CPU.

    This is our reading of the row "Pretrained" of A Metric Learning Reality Check: no source says how the trunk's
    features are reduced to the size of the embeddings.

    Args:
        embedder: A linear layer with bias, (c) to (d).
        features: The trunk's features (n, c) of the training images.
    """
    assert isinstance(embedder, nn.Linear)
    images, width = features.shape
    # The centred features of n images span at most n - 1 directions.
    if embedder.out_features > min(images - 1, width):
        raise RefusedError(
            f"{images} training images with {width} features have fewer than {embedder.out_features} principal "
            "components; use a smaller embedding_size or more images"
        )
    weight, bias = _projection(features.cpu().contiguous(), embedder.out_features)
    with torch.no_grad():
        embedder.weight.copy_(weight)
        embedder.bias.copy_(bias)


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
    weight, bias = _projection(standard.cpu().contiguous(), dimensions)
    return (standard.double() @ weight.T.to(standard.device) + bias.to(standard.device)).to(embeddings.dtype)


def _projection(features: Tensor, components: int) -> tuple[Tensor, Tensor]:
    """Return weight (d, c) and bias (d,) of the projection, in float64."""
    # All trainings on the features of one fold of a frozen trunk need the same components.
    name = hashlib.sha256(features.numpy().data).hexdigest(), tuple(features.shape), components
    if name not in _FITTED:
        # Imported here, because most trainings do not need scikit-learn.
        from sklearn.decomposition import PCA

        fitted = PCA(components, svd_solver="covariance_eigh").fit(features.double().numpy())
        weight = torch.from_numpy(fitted.components_)
        if len(_FITTED) == _KEPT:
            _FITTED.pop(next(iter(_FITTED)))
        _FITTED[name] = weight, -weight @ torch.from_numpy(fitted.mean_)
    return _FITTED[name]
