"""Structured clustering by facility location: the classes must be the best clustering of a batch."""

from typing import Any

import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses.base_metric_loss_function import BaseMetricLossFunction
from pytorch_metric_learning.utils import common_functions as c_f
from torch import Tensor
from torch.nn import functional

from .checks import ByCosine, checked_labels
from .sub_losses import already_reduced


class ClusteringLoss(ByCosine, BaseMetricLossFunction):
    """The classes of a batch must score higher than every other clustering, by a margin that grows with its error.

    With the Euclidean distances D between the unit embeddings, the K classes y of the batch, and medoids S among its
    samples, each sample of which belongs to the cluster g(S) of its nearest medoid::

        F(S)  = -sum_i min_{j in S} D_ij
        F*(y) =  sum_classes max_{j in class} -sum_{i in class} D_ij
        Delta = 1 - NMI(g(S), y),                             NMI = I(g, y) / sqrt(H(g) H(y))
        L     = max(0, max_{|S| = K} (F(S) + gamma Delta) - F*(y))

    The inner maximum is searched greedily: medoids are added one by one, each the best addition, and then
    `sweeps` times the medoid of each cluster is replaced by the best of its samples, which has the largest
    `-sum_{i in cluster} D_ij + gamma Delta`. The value is a sum over the batch.

    `indices_tuple` is refused. A batch of one class has the loss 0.

    Shapes: embeddings (B, d) of any norm, labels (B,). A step takes memory for a few times `B K^2` numbers.

    Args:
        gamma: the margin of a clustering that shares nothing with the classes, in Euclidean distances of unit vectors,
            summed over the batch; default 100, ours. With small values no higher clustering is found long before
            neighbours are right.
        sweeps: replacements of all medoids; default 5.
        **kwargs: PML's `reducer`, `embedding_regularizer`, `embedding_reg_weight` and `collect_stats`.

    Raises:
        ValueError: for a gamma or a number of sweeps below 0, an `indices_tuple`, and every batch that
            `checked_labels` refuses.

    Source: Oh Song et al., Deep Metric Learning via Facility Location, CVPR 2017, sections 3.2 to 3.4, and the function
    `cluster_loss` of TensorFlow 1's contributed losses.
    """

    def __init__(self, gamma: float = 100.0, sweeps: int = 5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        c_f.assert_distance_type(self, CosineSimilarity)
        if min(gamma, sweeps) < 0:
            raise ValueError(f"gamma and sweeps must be at least 0, got {gamma} and {sweeps}")
        self.gamma, self.sweeps = gamma, sweeps
        self.add_to_recordable_attributes(list_of_names=["gamma"], is_stat=False)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-loss `loss` of embeddings (B, d) and labels (B,), already reduced."""
        labels = checked_labels(embeddings, labels)
        if indices_tuple is not None:
            raise ValueError("ClusteringLoss takes no indices_tuple: it compares clusterings of the whole batch")
        unit = functional.normalize(embeddings, dim=1)
        distances = torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist")
        classes, codes = labels.unique(return_inverse=True)
        own = functional.one_hot(codes, len(classes)).to(unit.dtype)
        medoids = self.medoids(distances.detach(), own)
        nearest = distances[medoids].min(dim=0)
        found = functional.one_hot(nearest.indices, len(classes)).to(unit.dtype)
        margin = self.gamma * (1 - _agreement((found.T @ own).unsqueeze(0))).squeeze(0)
        # Row j, column k: the distances of sample j to all samples of class k, for samples of the class only.
        of_classes = (distances @ own).where(own.bool(), torch.inf).min(dim=0).values
        gap = margin - nearest.values.sum() + of_classes.sum()
        return already_reduced(loss=gap.clamp(min=0))

    @torch.no_grad()
    def medoids(self, distances: Tensor, own: Tensor) -> Tensor:
        """The samples S (K,) that maximise `F(S) + gamma Delta` for distances (B, B) and classes (B, K) as one-hot."""
        chosen = distances.new_zeros(0, dtype=torch.long)
        for _ in range(own.shape[1]):
            nearest, agreement = _additions(distances, own, chosen)
            gain = self.gamma * (1 - agreement) - nearest.sum(1)
            chosen = torch.cat([chosen, gain.index_fill(0, chosen, -torch.inf).argmax().unsqueeze(0)])
        for _ in range(self.sweeps):
            clusters = distances[chosen].argmin(0).scatter(0, chosen, torch.arange(len(chosen), device=chosen.device))
            for cluster in range(len(chosen)):
                members = clusters == cluster
                _, agreement = _additions(distances, own, torch.cat([chosen[:cluster], chosen[cluster + 1 :]]))
                gain = self.gamma * (1 - agreement) - distances @ members.to(distances.dtype)
                chosen[cluster] = gain.where(members, -torch.inf).argmax()
        return chosen


def _additions(distances: Tensor, own: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """What each sample would do as a further medoid beside `chosen` (k,).

    Returns:
        The distances (B, B) of all samples to their nearest medoid, and the agreement (B,) of the clusters with the
        classes; row j, entry j: with sample j.
    """
    count, classes = own.shape
    if len(chosen) == 0:
        return distances, _agreement(own.sum(0).expand(count, 1, classes))
    before = distances[chosen].min(dim=0)
    moves = distances < before.values
    moves.fill_diagonal_(True)
    clusters = functional.one_hot(before.indices, len(chosen)).to(own.dtype)
    pairs = (clusters.unsqueeze(2) * own.unsqueeze(1)).flatten(1)
    stay = (~moves).to(own.dtype) @ pairs
    tables = torch.cat([stay.view(count, -1, classes), (moves.to(own.dtype) @ own).unsqueeze(1)], dim=1)
    return torch.minimum(distances, before.values), _agreement(tables)


def _agreement(tables: Tensor) -> Tensor:
    """Normalised mutual information (n,) of clusters and classes, from their common counts (n, clusters, classes)."""
    rows, columns = tables.sum(2), tables.sum(1)
    total = rows.sum(1)
    joint, of_clusters, of_classes = (
        total.log() - torch.special.xlogy(counts, counts).sum(-1) / total
        for counts in (tables.flatten(1), rows, columns)
    )
    one_cluster, one_class = (counts.amax(-1) == total for counts in (rows, columns))
    shared = (of_clusters + of_classes - joint) / (of_clusters * of_classes).sqrt()
    # One part has no entropy: nothing is shared then, but two partitions into one part are equal.
    single = (one_cluster & one_class).to(shared.dtype)
    return torch.where(one_cluster | one_class, single, shared)
