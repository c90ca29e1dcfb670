"""Greedy k-center: points of a class that lie far from each other."""

import torch
from torch import Tensor


def greedy_k_center(pool: Tensor, initial: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Choose, in every class, k times the point that is farthest from all points already chosen.

    `j* = argmax_j m_j;  m_j <- min(m_j, |pool_j - pool_j*|^2)`, starting from `m_j = min_i |pool_j - initial_i|^2`.

    Args:
        pool: (C, b, d) candidates of each class.
        initial: (C, m, d) points that count as chosen already.
        k: number of points to choose per class, at most b.

    Returns:
        Positions in the pool (C, k) in the order of choice (the lowest position on ties), and the squared distance
        (C, k) of each point to the nearest point chosen before it.

    Raises:
        ValueError: for k below 1 or larger than b.

    Source: the greedy 2-approximation of Gonzalez (1985), with the initial set of Gurbuz et al., Deep Metric Learning
    with Chance Constraints, Algorithm 1.
    """
    if not 1 <= k <= pool.shape[1]:
        raise ValueError(f"cannot choose {k} of {pool.shape[1]} points")
    nearest = torch.full_like(pool[..., 0], torch.inf)
    for point in initial.unbind(dim=1):
        nearest = torch.minimum(nearest, _squared_distances(pool, point))
    rows = torch.arange(len(pool), device=pool.device)
    chosen, distances = [], []
    for _ in range(k):
        pick = nearest.argmax(dim=1)
        chosen.append(pick)
        distances.append(nearest[rows, pick])
        nearest = torch.minimum(nearest, _squared_distances(pool, pool[rows, pick]))
    return torch.stack(chosen, dim=1), torch.stack(distances, dim=1)


def _squared_distances(pool: Tensor, points: Tensor) -> Tensor:
    # Differences, not products: equal points must have a distance of exactly 0.
    return (pool - points.unsqueeze(1)).square().sum(dim=2)
