"""Agreement of k-means clusters with the classes (NMI)."""

import torch
from torch import Tensor

from protocols.metrics.neighbours import checked

_SEED, _ITERATIONS = 1234, 20


def nmi(embeddings: Tensor, labels: Tensor) -> float:
    """Compute the normalised mutual information of the classes and of as many k-means clusters.

    NMI = 2 I(clusters; classes) / (H(clusters) + H(classes)). The mean of the two entropies normalises, as in
    scikit-learn and the papers. The k-means is that of Roth et al. (2020), which the tables of ProxyGML and NIR follow:
    that of faiss on a CPU, with one start, 20 iterations and all images. The seed is fixed, so equal embeddings give an
    equal value.

    Args:
        embeddings: (n, d), normalised.
        labels: (n,), the classes.

    Returns:
        The NMI, in [0, 1].

    Raises:
        ValueError: An embedding is not finite.
    """
    # Imported here because faiss is an extra, and scikit-learn takes seconds.
    import faiss
    from sklearn.metrics import normalized_mutual_info_score

    points = checked(embeddings).float().cpu().contiguous().numpy()
    faiss.omp_set_num_threads(torch.get_num_threads())
    sizes = {"min_points_per_centroid": 1, "max_points_per_centroid": len(points)}
    means = faiss.Kmeans(points.shape[1], len(labels.unique()), niter=_ITERATIONS, seed=_SEED, **sizes)
    means.train(points)
    clusters = means.assign(points)[1]
    return float(normalized_mutual_info_score(labels.cpu().numpy(), clusters, average_method="arithmetic"))
