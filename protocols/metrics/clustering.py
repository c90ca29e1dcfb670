"""Agreement of k-means clusters with the classes (NMI)."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.metrics.neighbours import checked, nearest

_SEED = 1234
_ITERATIONS = 20
_SHIFT = 1 / 1024
"""How far the two halves of a split cluster move from its centre, as a share of it."""


def nmi(embeddings: Tensor, labels: Tensor) -> float:
    """Compute the normalised mutual information of the classes and of as many k-means clusters.

    NMI = 2 I(clusters; classes) / (H(clusters) + H(classes)). The mean of the two entropies normalises, as in
    scikit-learn and the papers. The k-means is that of Roth et al. (2020), which the tables of ProxyGML and NIR follow:
    that of faiss with one start, 20 iterations and all images. It is computed here, step by step and with the same
    random numbers as in faiss. The seed is fixed, so equal embeddings give an equal value with the same number of
    threads. (Where points have two equally near centres, faiss and this may choose differently.)

    Args:
        embeddings: (n, d), normalised.
        labels: (n,), the classes.

    Returns:
        The NMI, in [0, 1].

    Raises:
        ValueError: An embedding is not finite.
    """
    # Imported here because it takes seconds, which a check of metric names should not need.
    from sklearn.metrics import normalized_mutual_info_score

    embeddings = checked(embeddings)
    clusters = _k_means(embeddings.float(), len(labels.unique()))
    return float(normalized_mutual_info_score(labels.cpu().numpy(), clusters.numpy(), average_method="arithmetic"))


def _k_means(points: Tensor, k: int) -> Tensor:
    """The cluster of each point (n, d), int64 (n,): Lloyd's iterations as in faiss's `Clustering`."""
    # A sum on a GPU would depend on the order of its threads.
    summed = points.cpu()
    if k == len(points):
        return nearest(points, points, 1, exclude_self=False)[:, 0]
    centres = summed[torch.from_numpy(_permutation(len(points), _SEED + 1)[:k])]
    for _ in range(_ITERATIONS):
        clusters = nearest(points, centres.to(points.device), 1, exclude_self=False)[:, 0]
        sizes = torch.bincount(clusters, minlength=k).float()
        centres = torch.zeros_like(centres).index_add(0, clusters, summed) * (1 / sizes.clamp_min(1))[:, None]
        _split_into_empty(centres, sizes, len(points))
    return nearest(points, centres.to(points.device), 1, exclude_self=False)[:, 0]


def _split_into_empty(centres: Tensor, sizes: Tensor, n: int) -> None:
    """Give each empty cluster half of another one, which is drawn with a probability that grows with its size."""
    k = len(sizes)
    counts = sizes.numpy()
    draws = _Draws(_SEED)
    signs = _SHIFT * (1 - 2 * (torch.arange(centres.shape[1]) % 2)).double()
    for empty in np.flatnonzero(counts == 0):
        while not (accepted := draws.ahead(k) < (counts - 1) / (n - k)).any():
            draws.drop(k)
        split = int(accepted.argmax())
        draws.drop(split + 1)
        centre = centres[split].double()
        centres[empty], centres[split] = centre * (1 + signs), centre * (1 - signs)
        counts[empty] = counts[split] / 2
        counts[split] -= counts[empty]


class _Draws:
    """Uniform float32 numbers in [0, 1] from the Mersenne Twister, as faiss draws them."""

    def __init__(self, seed: int) -> None:
        self._generator = _twister(seed)
        self._drawn = np.empty(0, dtype=np.float32)

    def ahead(self, count: int) -> NDArray[np.float32]:
        """The next numbers, which stay the next ones."""
        missing = count - len(self._drawn)
        if missing > 0:
            new = self._generator.random_raw(missing).astype(np.float32) / np.float32(2**32 - 1)
            self._drawn = np.concatenate([self._drawn, new])
        return self._drawn[:count]

    def drop(self, count: int) -> None:
        self._drawn = self._drawn[count:]


def _permutation(n: int, seed: int) -> NDArray[np.int64]:
    """A random order of n things, by the swaps and numbers of faiss's `rand_perm`."""
    order = np.arange(n)
    partners = np.arange(n) + _twister(seed).random_raw(n).astype(np.int64) % np.arange(n, 0, -1)
    for position, partner in enumerate(partners[:-1].tolist()):
        order[position], order[partner] = order[partner], order[position]
    return order


def _twister(seed: int) -> np.random.MT19937:
    """The Mersenne Twister in the state that C++'s `std::mt19937` has for a seed."""
    generator = np.random.MT19937()
    state: Any = np.random.RandomState(seed).get_state(legacy=False)
    generator.state = state
    return generator
