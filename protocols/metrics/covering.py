"""How far the images of a class are from few of them."""

import torch
from torch import Tensor

from losses.k_center import greedy_k_center

POOL_ELEMENTS = 1 << 22
"""Coordinates of images held at once; 2^22 float64 are 32 MiB."""

_ROWS = 512


def covering_radius(embeddings: Tensor, labels: Tensor) -> float:
    """Average covering radius of Gurbuz et al., Deep Metric Learning with Chance Constraints, supplement 1.2.

    For a class of n images and every k = 1..n, k of the images are chosen so that the largest distance of an image to
    the nearest chosen one, the covering radius, is small; the figure is the mean radius over k, then over classes.
    Euclidean distances between normalised embeddings (n, d), labels (n,).

    "We take k samples with minimum cover": the best k are hard to find, and the paper does not say how they were. Here
    the first is the best single image, and the others follow by the paper's greedy k-center, whose radius is at most
    twice the smallest. Raises ValueError for embeddings that are not finite.
    """
    if not torch.isfinite(embeddings).all():
        raise ValueError("embeddings are not finite")
    place, sizes = labels.to(embeddings.device).unique(return_inverse=True, return_counts=True)[1:]
    by_class = place.argsort(stable=True)
    starts = sizes.cumsum(0) - sizes
    total = 0.0
    # Classes of equal size are covered together.
    for size in sizes.unique().tolist():
        alike = starts[sizes == size]
        rows = by_class[alike[:, None] + torch.arange(size, device=alike.device)]
        for part in rows.split(max(1, POOL_ELEMENTS // (size * embeddings.shape[1]))):
            total += float(_mean_radii(embeddings[part].double()).sum())
    return total / len(sizes)


def _mean_radii(pool: Tensor) -> Tensor:
    """(C,) mean covering radius over k = 1..n of C classes of n images, pool (C, n, d)."""
    farthest = torch.cat([_distances(part, pool).amax(2) for part in pool.split(_ROWS, dim=1)], dim=1)
    first = pool[torch.arange(len(pool), device=pool.device), farthest.argmin(1)]
    # What is chosen next is the farthest from all chosen so far, so its distance is their covering radius.
    squared = greedy_k_center(pool, first[:, None], pool.shape[1])[1]
    return squared.sqrt().mean(1)


def _distances(one: Tensor, other: Tensor) -> Tensor:
    return torch.cdist(one, other, compute_mode="donot_use_mm_for_euclid_dist")
