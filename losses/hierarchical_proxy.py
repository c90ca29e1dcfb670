"""Hierarchical proxy loss on Proxy-Anchor, in our reading: groups of classes have proxies, too."""

from typing import Any, Literal

import torch
from pytorch_metric_learning.utils import common_functions as c_f
from pytorch_metric_learning.utils import loss_and_miner_utils as lmu
from torch import Tensor, nn
from torch.nn import functional

from losses.binding import Binding
from losses.plugin import Clock, Needs, TrainingContext
from losses.proxy_anchor import ProxyAnchorLoss
from losses.spherical_k_means import spherical_k_means


class HierarchicalProxyLoss(ProxyAnchorLoss):
    """Proxy-Anchor to the proxies of classes, and again to the proxies of groups of classes.

    With Proxy-Anchor L_PA, class proxies P (C, d), groups `g: classes -> 0..G-1` and group proxies R (G, d)::

        L = L_PA(x, y; P) + coarse_weight L_PA(x, g(y); R)

    The paper's text was not at hand: number of levels and groups, kind of group proxies, schedule and weight are our
    choices, and results are to be called "HPL-PA (our reading)". Until the first clustering only the first term counts.
    The groups are found by spherical k-means on the class proxies: k-means++ in the first epoch after the warm-up, from
    then on every `period` passes over the data, starting from the groups of before.

    Embeddings (B, d) may be raw; sub-losses `pos_loss`, `neg_loss` (C), `coarse_pos_loss`, `coarse_neg_loss` (G).

    Args:
        num_classes, embedding_size: C and d.
        num_groups: G, `max(2, C // 10)`, but at most C.
        coarse_weight: weight of the second term, 0.1.
        period: passes over the training images between two clusterings, 1.
        coarse: `centroid`, where `R_j` is the normalised mean of the unit proxies of group j and moves them, or
            `learned`, parameters of their own that start there; `centroid`.
        margin, alpha: of both levels, 0.1 and 32.

    Further keywords go to `ProxyAnchorLoss`.

    State in buffers: `groups` (C, int64; -1 before the first clustering) and `clustered_at`, in passes. Raises
    ValueError for settings out of range and for every batch `ProxyAnchorLoss` refuses.

    Source: idea after Yang et al., Hierarchical Proxy-based Loss for Deep Metric Learning, WACV 2022.
    """

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
        coarse: Literal["centroid", "learned"] = "centroid",
        margin: float = 0.1,
        alpha: float = 32.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, margin=margin, alpha=alpha, **kwargs)
        self.num_groups = min(num_classes, max(2, num_classes // 10)) if num_groups is None else num_groups
        if not 1 <= self.num_groups <= num_classes or period < 1 or coarse not in ("centroid", "learned"):
            raise ValueError(f"cannot make {num_groups} groups of {num_classes} classes, period {period}, {coarse!r}")
        self.coarse_weight, self.period = coarse_weight, period
        self.coarse_proxies = (
            nn.Parameter(torch.zeros(self.num_groups, embedding_size)) if coarse == "learned" else None
        )
        self.register_buffer("groups", torch.full((num_classes,), -1))
        self.register_buffer("clustered_at", torch.tensor(-1))
        self._binding = Binding()
        self.add_to_recordable_attributes(list_of_names=["num_groups", "coarse_weight", "period"], is_stat=False)

    def bind(self, context: TrainingContext) -> None:
        """Take the generator for the draws of k-means++."""
        self._binding = Binding(context)

    def on_epoch_start(self, clock: Clock) -> None:
        """Cluster the proxies after the warm-up, and again whenever `period` passes have gone by."""
        if clock.warmup or clock.passes < self.needs.warmup_epochs:
            return
        if self.clustered_at < 0 or clock.passes - self.clustered_at >= self.period:
            self.cluster()
            self.clustered_at.fill_(clock.passes)

    @torch.no_grad()
    def cluster(self) -> None:
        """Group the classes by their proxies, from the groups of before if there are any."""
        unit = functional.normalize(self.proxies, dim=1)
        start = self.centroids(unit) if self._grouped() else None
        self.set_groups(spherical_k_means(unit, self.num_groups, start, self._binding.generator))

    @torch.no_grad()
    def set_groups(self, groups: Tensor) -> None:
        """Prescribe the group (C,) of every class; learned group proxies start from the first groups' centroids."""
        if groups.shape != self.groups.shape or groups.min() < 0 or groups.max() >= self.num_groups:
            raise ValueError(f"groups must be {self.num_classes} numbers in 0..{self.num_groups - 1}")
        first = not self._grouped()
        self.groups.copy_(groups)
        if self.coarse_proxies is not None and first:
            self.coarse_proxies.copy_(self.centroids(functional.normalize(self.proxies, dim=1)))

    def _grouped(self) -> bool:
        return bool(self.groups[0] >= 0)

    def centroids(self, unit: Tensor) -> Tensor:
        """Normalised mean (G, d) of the unit proxies (C, d) of every group; zero for a group without class."""
        sums = unit.new_zeros(self.num_groups, unit.shape[1]).index_add(0, self.groups, unit)
        return functional.normalize(sums, dim=1)

    def group_logits(self, embeddings: Tensor) -> Tensor:
        """Cosines (B, G) between embeddings (B, d) and the group proxies."""
        if self.coarse_proxies is not None:
            rows = self.coarse_proxies.to(embeddings.dtype)
        else:
            rows = self.centroids(functional.normalize(self.proxies.to(embeddings.dtype), dim=1))
        similarity: Tensor = self.distance(embeddings, rows)
        return similarity

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: Proxy-Anchor's two sub-losses, and the same of the groups."""
        terms = super().compute_loss(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        nothing = {"losses": 0, "indices": None, "reduction_type": "already_reduced"}
        if not self._grouped():
            return {**terms, "coarse_pos_loss": nothing, "coarse_neg_loss": nothing}
        weights = lmu.convert_to_weights(indices_tuple, labels, dtype=embeddings.dtype)
        own = functional.one_hot(self.groups[labels.long()], self.num_groups).bool()
        return {**terms, **self._coarse_terms(self.group_logits(embeddings), own, weights.unsqueeze(1) - 1)}

    def _coarse_terms(self, cosine: Tensor, own: Tensor, offset: Tensor) -> dict[str, Any]:
        """Proxy-Anchor's two sums, of cosines (B, G), membership (B, G) and what mining adds to exponents (B, 1)."""
        attraction = lmu.logsumexp(-self.alpha * (cosine - self.margin) + offset, keep_mask=own, add_one=True, dim=0)
        repulsion = lmu.logsumexp(self.alpha * (cosine + self.margin) + offset, keep_mask=~own, add_one=True, dim=0)
        present = int(own.any(dim=0).sum())
        parts = {"coarse_pos_loss": (attraction, present), "coarse_neg_loss": (repulsion, self.num_groups)}
        return {
            name: {
                "losses": self.coarse_weight * losses.squeeze(0),
                "indices": c_f.torch_arange_from_size(losses, size_dim=1),
                "reduction_type": "element",
                "divisor": divisor,
            }
            for name, (losses, divisor) in parts.items()
        }

    def _sub_loss_names(self) -> list[str]:
        return ["pos_loss", "neg_loss", "coarse_pos_loss", "coarse_neg_loss"]
