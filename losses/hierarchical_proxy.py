"""Hierarchical proxy loss on Proxy-Anchor, in our reading: groups of classes have proxies too."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .plugin import Clock, Needs, TrainingContext
from .proxy_anchor import ProxyAnchorLoss, log_one_plus_sum, mined_offset
from .schedule import HookReminder
from .sub_losses import already_reduced, of_classes


def spherical_k_means(
    points: Tensor, k: int, start: Tensor | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """Cluster unit vectors by cosine; no cluster is empty.

    Alternates `cluster_i = argmax_j points_i . centroid_j` and `centroid_j = normalize(sum of its points)` until no
    point changes its cluster, at most 100 times. An empty cluster takes the point that is farthest from its centroid.

    Args:
        points: (n, d) unit vectors.
        k: number of clusters, at most n.
        start: (k, d) first centroids. Default None: k-means++ draws them from the points, the first one uniformly, each
            next one with a probability proportional to its squared distance `2 - 2 cos` from the nearest drawn point.
        generator: generator of these draws, on the CPU; default None, torch's global generator.

    Returns:
        The cluster (n,) of each point, in 0..k-1.

    Raises:
        ValueError: for k below 1 or larger than n.
    """
    if not 1 <= k <= len(points):
        raise ValueError(f"cannot make {k} clusters of {len(points)} points")
    centroids = _plus_plus(points, k, generator) if start is None else start
    clusters = _assign(points, centroids)
    for _ in range(100):
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


class HierarchicalProxyLoss(HookReminder, ProxyAnchorLoss):
    """Proxy-Anchor to the proxies of classes, and again to the proxies of groups of classes.

    With Proxy-Anchor L_PA, class proxies P (C, d), groups `g: classes -> 0..G-1` and group proxies R (G, d), which are
    the normalised means of the unit proxies of a group and pass their gradient on to them::

        L = L_PA(x, y; P) + coarse_weight L_PA(x, g(y); R)

    The text of the paper was not available. Number of levels and groups, kind of group proxies, schedule and weight are
    our choices; call results of this loss "HPL-PA (our reading)". Before the first clustering the loss is its first
    term. Spherical k-means on the class proxies makes the groups: with k-means++ in the first epoch after the warm-up,
    then every `period` passes over the data from the current groups.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-losses `pos_loss` and `neg_loss` (C,),
    `coarse_pos_loss` and `coarse_neg_loss` (G,).

    Args:
        num_classes: C.
        embedding_size: d.
        num_groups: G; default `max(2, C // 10)`, but at most C.
        coarse_weight: weight of the second term; default 0.1.
        period: passes over the training images between two clusterings; default 1.
        **kwargs: those of `ProxyAnchorLoss`; `margin` and `alpha` are those of both levels.

    Attributes:
        groups: buffer (C,) of int64, the group of each class; -1 before the first clustering.
        clustered_at: buffer, passes at the last clustering; -1 before the first.

    Raises:
        ValueError: for settings out of range and for every batch that `ProxyAnchorLoss` refuses.

    Source: idea after Yang et al., Hierarchical Proxy-based Loss for Deep Metric Learning, WACV 2022.
    """

    sub_losses = ("pos_loss", "neg_loss", "coarse_pos_loss", "coarse_neg_loss")
    needs = Needs(warmup_epochs=1)

    alpha: float
    margin: float
    groups: Tensor
    clustered_at: Tensor

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        num_groups: int | None = None,
        coarse_weight: float = 0.1,
        period: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, **kwargs)
        self.num_groups = min(num_classes, max(2, num_classes // 10)) if num_groups is None else num_groups
        if not 1 <= self.num_groups <= num_classes or period < 1:
            raise ValueError(f"cannot make {num_groups} groups of {num_classes} classes, period {period}")
        self.coarse_weight, self.period = coarse_weight, period
        self.register_buffer("groups", torch.full((num_classes,), -1))
        self.register_buffer("clustered_at", torch.tensor(-1))
        self._context: TrainingContext | None = None
        self.add_to_recordable_attributes(list_of_names=["num_groups", "coarse_weight", "period"], is_stat=False)

    def bind(self, context: TrainingContext) -> None:
        """Keep the context, whose generator serves the draws of k-means++."""
        self._context = context

    def on_epoch_start(self, clock: Clock) -> None:
        """Cluster the proxies after the warm-up, and again after every `period` passes."""
        self._hook_was_called = True
        if clock.warmup or clock.passes < self.needs.warmup_epochs:
            return
        last = int(self.clustered_at)
        if last < 0 or clock.passes - last >= self.period:
            self.cluster()
            self.clustered_at.fill_(clock.passes)

    def _missing_without_hooks(self) -> str | None:
        return None if self._grouped() else "no groups of classes"

    @torch.no_grad()
    def cluster(self) -> None:
        """Group the classes by their proxies; k-means starts from the current groups if there are any."""
        unit = functional.normalize(self.proxies, dim=1)
        start = self.centroids(unit) if self._grouped() else None
        generator = self._context.generator if self._context else None
        self.set_groups(spherical_k_means(unit, self.num_groups, start, generator))

    @torch.no_grad()
    def set_groups(self, groups: Tensor) -> None:
        """Set the group (C,) of every class, in 0..G-1.

        Raises:
            ValueError: for another shape or a group out of range.
        """
        if groups.shape != self.groups.shape or groups.min() < 0 or groups.max() >= self.num_groups:
            raise ValueError(f"groups must be {self.num_classes} numbers in 0..{self.num_groups - 1}")
        self.groups.copy_(groups)

    def _grouped(self) -> bool:
        return bool(self.groups[0] >= 0)

    def centroids(self, unit: Tensor) -> Tensor:
        """Normalised means (G, d) of the unit proxies (C, d) in each group; zero for a group without a class."""
        sums = unit.new_zeros(self.num_groups, unit.shape[1]).index_add(0, self.groups, unit)
        return functional.normalize(sums, dim=1)

    def group_logits(self, embeddings: Tensor) -> Tensor:
        """Cosines (B, G) between embeddings (B, d) and the group proxies."""
        rows = self.centroids(functional.normalize(self.proxies.to(embeddings.dtype), dim=1))
        similarity: Tensor = self.distance(embeddings, rows)
        return similarity

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the two sub-losses of Proxy-Anchor for classes, and the same two for groups."""
        terms = super().compute_loss(embeddings, labels, indices_tuple)
        if self.training:
            self._count_call()
        if not self._grouped():
            return {**terms, **already_reduced(coarse_pos_loss=0, coarse_neg_loss=0)}
        cosine = self.group_logits(embeddings)
        members = functional.one_hot(self.groups[labels.long()], self.num_groups).bool()
        offset = mined_offset(indices_tuple, labels, embeddings.dtype)
        attraction = log_one_plus_sum(-self.alpha * (cosine - self.margin) + offset, members)
        repulsion = log_one_plus_sum(self.alpha * (cosine + self.margin) + offset, ~members)
        terms["coarse_pos_loss"] = of_classes(self.coarse_weight * attraction, members.any(dim=0).sum())
        terms["coarse_neg_loss"] = of_classes(self.coarse_weight * repulsion, self.num_groups)
        return terms
