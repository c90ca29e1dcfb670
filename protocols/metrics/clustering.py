"""How well clusters found without labels agree with the classes."""

import numpy as np
import torch
from torch import Tensor

_SEED = 1234
_ITERATIONS = 20
_NO_LIMIT = 10**9


def nmi(embeddings: Tensor, labels: Tensor) -> float:
    """Normalised mutual information, in [0, 1], of the classes and of as many k-means clusters.

    NMI = 2 I(clusters; classes) / (H(clusters) + H(classes)): the mean of the two entropies normalises, as scikit-learn
    and the papers do. The k-means is that of Roth et al. (2020), which ProxyGML's and NIR's tables follow: faiss, one
    start, 20 iterations, every image used. Centres start from a fixed seed, so that equal embeddings under an equal
    number of threads give an equal figure.

    embeddings (n, d) normalised, labels (n,). Raises ValueError for embeddings that are not finite.
    """
    # Here, since reading an experiment's metric names should not wait seconds for these two.
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
