"""Greedy k-center: choose few points of a pool so that every point of the pool is near one of them."""

import torch
from torch import Tensor
from torch.nn import functional


def greedy_k_center(pool: Tensor, initial: Tensor, k: int, normalize: bool = False) -> tuple[Tensor, Tensor]:
    """Choose, in every class, k times the point that is farthest from all points already chosen.

    `j* = argmax_j m_j;  m_j <- min(m_j, |pool_j - pool_j*|^2)`, starting from `m_j = min_i |pool_j - initial_i|^2`.

    Args:
        pool: (C, b, d) candidates of each class.
        initial: (C, m, d) points that count as chosen already.
        k: number of points to choose per class, at most b.
        normalize: whether to measure between unit vectors; default False, between the vectors as they are.

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
    if normalize:
        pool, initial = functional.normalize(pool, dim=2), functional.normalize(initial, dim=2)
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
    """(C, b) between all candidates (C, b, d) and one point of each class (C, d); exactly 0 for equal points."""
    return (pool - points.unsqueeze(1)).square().sum(dim=2)
