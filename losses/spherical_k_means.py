"""k-means on the unit sphere."""

import torch
from torch import Tensor
from torch.nn import functional


def spherical_k_means(
    points: Tensor,
    k: int,
    start: Tensor | None = None,
    generator: torch.Generator | None = None,
    max_rounds: int = 100,
) -> Tensor:
    """Cluster unit vectors by cosine; no cluster is empty.

    Alternates `cluster_i = argmax_j points_i . centroid_j` and `centroid_j = normalize(sum of its points)` until no
    point changes its cluster. An empty cluster takes the point that is farthest from its centroid.

    Args:
        points: (n, d) unit vectors.
        k: number of clusters, at most n.
        start: (k, d) first centroids. Default None: k-means++ draws them from the points, the first one uniformly, each
            next one with a probability proportional to its squared distance `2 - 2 cos` from the nearest drawn point.
        generator: generator of these draws, on the CPU; default None, torch's global generator.
        max_rounds: largest number of alternations; default 100.

    Returns:
        The cluster (n,) of each point, in 0..k-1.

    Raises:
        ValueError: for k below 1 or larger than n.
    """
    if not 1 <= k <= len(points):
        raise ValueError(f"cannot make {k} clusters of {len(points)} points")
    centroids = _plus_plus(points, k, generator) if start is None else start
    clusters = _assign(points, centroids)
    for _ in range(max_rounds):
        centroids = functional.normalize(torch.zeros_like(centroids).index_add(0, clusters, points), dim=1)
        moved = _assign(points, centroids)
        if torch.equal(moved, clusters):
            break
        clusters = moved
    return clusters


def _plus_plus(points: Tensor, k: int, generator: torch.Generator | None) -> Tensor:
    chance = torch.ones(len(points))
    drawn: list[int] = []
    nearest = torch.full((len(points),), torch.inf)
    for _ in range(k):
        pick = int(torch.multinomial(chance, 1, generator=generator))
        drawn.append(pick)
        nearest = torch.minimum(nearest, (2 - 2 * points @ points[pick]).float().cpu())
        nearest[drawn] = 0
        # If all points coincide with drawn points, any point that is not drawn yet is as good.
        chance = nearest.clamp(min=1e-12)
        chance[drawn] = 0
        if len(drawn) == len(points):
            break
    return points[drawn]


def _assign(points: Tensor, centroids: Tensor) -> Tensor:
    """Nearest centroid (n,) of each point; an empty cluster gets the point that is farthest from its centroid."""
    similarity, clusters = (points @ centroids.T).max(dim=1)
    for empty in (clusters.bincount(minlength=len(centroids)) == 0).nonzero().flatten().tolist():
        crowded = clusters.bincount(minlength=len(centroids))[clusters] > 1
        farthest = similarity.masked_fill(~crowded, torch.inf).argmin()
        clusters[farthest], similarity[farthest] = empty, 1.0
    return clusters
