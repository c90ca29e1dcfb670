"""Agreement of k-means clusters with the classes (NMI)."""

import numpy as np
import torch
from torch import Tensor

_SEED = 1234
_ITERATIONS = 20
_NO_LIMIT = 10**9


def nmi(embeddings: Tensor, labels: Tensor) -> float:
    """Compute the normalised mutual information of the classes and of as many k-means clusters.

    NMI = 2 I(clusters; classes) / (H(clusters) + H(classes)). The mean of the two entropies normalises, as in
    scikit-learn and the papers. The k-means is that of Roth et al. (2020), which the tables of ProxyGML and NIR follow:
    faiss, one start, 20 iterations, all images. The seed is fixed, so equal embeddings give an equal value with the
    same number of threads.

    Args:
        embeddings: (n, d), normalised.
        labels: (n,), the classes.

    Returns:
        The NMI, in [0, 1].

    Raises:
        ValueError: An embedding is not finite.
    """
    # Imported here because both take seconds, which a check of metric names should not need.
    import faiss
    from sklearn.metrics import normalized_mutual_info_score

    if not torch.isfinite(embeddings).all():
        raise ValueError("embeddings are not finite")
    rows = np.ascontiguousarray(embeddings.detach().cpu().numpy(), dtype=np.float32)
    faiss.omp_set_num_threads(torch.get_num_threads())
    k_means = faiss.Kmeans(
        rows.shape[1],
        len(labels.unique()),
        niter=_ITERATIONS,
        seed=_SEED,
        min_points_per_centroid=1,
        max_points_per_centroid=_NO_LIMIT,
    )
    k_means.train(rows)
    clusters = k_means.assign(rows)[1]
    return float(normalized_mutual_info_score(labels.cpu().numpy(), clusters, average_method="arithmetic"))
