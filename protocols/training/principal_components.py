"""Principal components of features as an embedder that nothing trains."""

import torch
from torch import Tensor, nn

from protocols.training.build_method import MethodError


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

    Raises:
        MethodError: There are fewer images or features than components.
    """
    # Imported here, because trainings with a loss do not need scikit-learn.
    from sklearn.decomposition import PCA

    assert isinstance(embedder, nn.Linear)
    images, width = features.shape
    # The centred features of n images span at most n - 1 directions.
    if embedder.out_features > min(images - 1, width):
        raise MethodError(
            f"{images} training images with {width} features have fewer than {embedder.out_features} principal "
            "components; use a smaller embedding_size or more images"
        )
    fitted = PCA(embedder.out_features, svd_solver="covariance_eigh").fit(features.cpu().double().numpy())
    weight = torch.from_numpy(fitted.components_)
    with torch.no_grad():
        embedder.weight.copy_(weight)
        embedder.bias.copy_(-weight @ torch.from_numpy(fitted.mean_))
