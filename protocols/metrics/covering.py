"""CCP's two numbers about the geometry of embeddings: how far classes extend, and how far they are apart."""

import torch
from torch import Tensor

from losses.k_center import greedy_k_center
from protocols.metrics.neighbours import checked

POOL_ELEMENTS = 1 << 22
"""Largest number of embedding coordinates in memory at once; 2^22 float64 are 32 MiB."""

_ROWS = 512


def covering_radius(embeddings: Tensor, labels: Tensor) -> float:
    """Compute the average covering radius (Gurbuz et al., Chance Constraints, supplement 1.2).

    For a class of n images and every k = 1..n, k images are chosen. The covering radius is the largest distance of an
    image to the nearest chosen one. The result is the mean radius over k, then over classes.

    The paper writes "We take k samples with minimum cover", but not how they are found, which is a hard problem. Here
    the first chosen image is the best single one. The others follow by the paper's greedy k-center, whose radius is at
    most twice the smallest.

    Args:
        embeddings: (n, d), normalised.
        labels: (n,), the classes.

    Returns:
        The average covering radius, a Euclidean distance.

    Raises:
        ValueError: An embedding is not finite.
    """
    embeddings = checked(embeddings)
    class_of_image, sizes = labels.to(embeddings.device).unique(return_inverse=True, return_counts=True)[1:]
    by_class = class_of_image.argsort(stable=True)
    starts = sizes.cumsum(0) - sizes
    total = 0.0
    # Classes of equal size are covered together.
    for size in sizes.unique().tolist():
        starts_of_size = starts[sizes == size]
        rows = by_class[starts_of_size[:, None] + torch.arange(size, device=starts.device)]
        for part in rows.split(max(1, POOL_ELEMENTS // (size * embeddings.shape[1]))):
            total += float(_mean_radii(embeddings[part].double()).sum())
    return total / len(sizes)


def _mean_radii(pool: Tensor) -> Tensor:
    """(C,) mean covering radius over k = 1..n of C classes of n images, pool (C, n, d)."""
    farthest = torch.cat([_distances(part, pool).amax(2) for part in pool.split(_ROWS, dim=1)], dim=1)
    first = pool[torch.arange(len(pool), device=pool.device), farthest.argmin(1)]
    # The next chosen image is the farthest from the images chosen before, so its distance is their covering radius.
    squared = greedy_k_center(pool, first[:, None], pool.shape[1])[1]
    return squared.sqrt().mean(1)


def _distances(rows: Tensor, columns: Tensor) -> Tensor:
    return torch.cdist(rows, columns, compute_mode="donot_use_mm_for_euclid_dist")
