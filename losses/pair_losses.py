"""Pair losses of pytorch-metric-learning as here and in MLRC, a sum reducer and distances that are exact near 0."""

from typing import Any

import torch
from pytorch_metric_learning import miners as pml_miners
from pytorch_metric_learning.distances import LpDistance, SNRDistance
from pytorch_metric_learning.reducers import AvgNonZeroReducer, BaseReducer
from torch import Tensor

from .base import ByCosine, MetricLoss, at_least_float32, float32_sum, require_similarity, without_autocast
from .bridge import term
from .mined import pairs_of

COPY = 1e-5  # from the authors' code of XBM: a positive pair with a cosine of 1 - COPY or more is a sample and its copy
_FLOOR = 1e-20
_ROUNDING = 32.0  # in units of eps; we measured up to 15 between equal vectors of 2048 coordinates


class BatchSumReducer(BaseReducer):
    """Sum over all pairs, divided by the batch size B: the weight of a pair does not depend on the number of pairs."""

    def forward(self, loss_dict: dict[str, Any], embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        """`sum(losses) / B` for losses of pairs, added up; what is a number already is added as it is."""
        values = [
            part["losses"] if part["indices"] is None else float32_sum(part["losses"]) / len(embeddings)
            for part in loss_dict.values()
            if isinstance(part["losses"], Tensor)  # Version 2.9 has 0 where there are no pairs.
        ]
        return torch.stack(values).sum() if values else (embeddings * 0).sum()


class EuclideanDistance(LpDistance):
    """Euclidean distance by one matrix product, exactly 0 with gradient 0 between equal vectors.

    `|a - b|^2 = |a|^2 + |b|^2 - 2 a.b`. A sum below its rounding error counts as 0; between unit vectors in float32
    these are distances up to 0.003. PML's distance does not remove the rounding error, so a loss with a positive margin
    of 0 sees violations between equal vectors. Also, torch's distance changes its method at 25 rows.
    """

    def compute_mat(self, query_emb: Tensor, ref_emb: Tensor) -> Tensor:
        """Distances (B, R) of queries (B, d) and references (R, d)."""
        query_emb, ref_emb = at_least_float32(query_emb), at_least_float32(ref_emb)
        norms = query_emb.square().sum(dim=1).unsqueeze(1) + ref_emb.square().sum(dim=1)
        with without_autocast(query_emb):
            squared = norms - 2 * query_emb @ ref_emb.T
        equal = squared.detach() <= _ROUNDING * torch.finfo(squared.dtype).eps * norms.detach()
        # The inner fill keeps the root's infinite slope at 0 out of the gradient.
        return squared.masked_fill(equal, 1.0).sqrt().masked_fill(equal, 0.0)


class _PairLoss(MetricLoss):
    """Losses of positive and of negative pairs, which are reduced on their own."""

    takes_references = True
    sub_losses = ("pos_loss", "neg_loss")

    distance: Any

    def pull(self, near: Tensor) -> Tensor:
        """Losses of positive pairs (n,) from their distances or similarities (n,)."""
        raise NotImplementedError

    def push(self, near: Tensor) -> Tensor:
        """Losses of negative pairs (n,) from their distances or similarities (n,)."""
        raise NotImplementedError

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-losses `pos_loss` and `neg_loss`, one value per pair."""
        anchors, positives, others, negatives = pairs_of(indices_tuple, labels, ref_labels)
        if max(len(anchors), len(others)) < 2:  # As in version 2.9, a single pair counts as none.
            return self.nothing()
        near, terms = self.distance(embeddings, ref_emb), self.nothing()
        if len(anchors):
            terms["pos_loss"] = term(self.pull(near[anchors, positives]), (anchors, positives), "pos_pair")
        if len(others):
            terms["neg_loss"] = term(self.push(near[others, negatives]), (others, negatives), "neg_pair")
        return terms


class CosineContrastiveLoss(_PairLoss, ByCosine):
    """Contrastive loss on cosines, as in the code of XBM's authors.

    With S the cosine: `[ sum_{same label, S < 1 - 1e-5} (1 - S) + sum_{other label, S > margin} S ] / B`. A positive
    pair with a larger cosine counts as a copy and is ignored. A negative pair costs S, not `S - margin`, so the loss
    jumps at the margin; its gradient is that of the usual hinge.

    Args:
        margin: a negative pair with a cosine up to this costs nothing; default 0.5.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `BatchSumReducer`),
            `embedding_regularizer` and `embedding_reg_weight`.

    Source: Wang et al., Cross-Batch Memory for Embedding Learning, CVPR 2020, as in the authors' code.
    """

    def __init__(self, margin: float = 0.5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.margin = margin

    def pull(self, near: Tensor) -> Tensor:
        """Losses of positive pairs (n,) from their cosines."""
        return torch.where(near < 1 - COPY, 1 - near, 0.0)

    def push(self, near: Tensor) -> Tensor:
        """Losses of negative pairs (n,) from their cosines."""
        return torch.where(near > self.margin, near, 0.0)

    def default_reducer(self) -> BatchSumReducer:
        """Sum over pairs, divided by B."""
        return BatchSumReducer()


class SignalToNoiseDistance(SNRDistance):
    """`Var(a - b) / Var(a)`, which is 0, without a gradient, where all coordinates of a are equal but for rounding."""

    def compute_mat(self, query_emb: Tensor, ref_emb: Tensor) -> Tensor:
        """Distances (B, R) of queries (B, d) and references (R, d)."""
        rounding = _ROUNDING * torch.finfo(query_emb.dtype).eps
        flat = (query_emb.var(1) <= rounding**2 * query_emb.square().mean(1)).unsqueeze(1)
        # A ramp has a variance; the fill keeps what is divided by it out of value and gradient.
        ramp = torch.linspace(0, 1, query_emb.shape[1], dtype=query_emb.dtype, device=query_emb.device)
        distances: Tensor = super().compute_mat(torch.where(flat, ramp, query_emb), ref_emb)
        return distances.masked_fill(flat, 0.0)


class SignalToNoiseRatioContrastiveLoss(_PairLoss):
    """Contrastive loss on signal-to-noise distances, with a regulariser on the vectors that the distance compares.

    With unit embeddings x, `d(a, b) = Var(a - b) / Var(a)` and the regulariser's weight w::

        L = mean of max(0, d - pos_margin) over positive pairs above 0
          + mean of max(0, neg_margin - d) over negative pairs above 0
          + w * embedding_regularizer(x)                    (`ZeroMeanRegularizer`: mean_i |sum_k x_ik|)

    pytorch-metric-learning 0.9.86, and so MLRC, computes the last term on unit embeddings. The current class of the
    same name computes it on raw embeddings. If the distance does not normalise, all terms use raw embeddings. From a
    row whose coordinates are all equal d is 0 here, and not finite in both releases.

    Args:
        pos_margin: largest distance of a positive pair that costs nothing; default 0.
        neg_margin: smallest distance of a negative pair that costs nothing; default 1.
        **kwargs: PML's `distance` (an `SNRDistance`), `reducer` (default `AvgNonZeroReducer`), `embedding_regularizer`
            and `embedding_reg_weight`.

    Raises:
        ValueError: for another distance, and without labels and `indices_tuple`.

    Source: Yuan et al., Signal-to-noise Ratio, CVPR 2019; pytorch-metric-learning 0.9.86.
    """

    VERSION = 3
    """Version 1 was pytorch-metric-learning's class, version 2 not finite for a row of equal coordinates."""

    def __init__(self, pos_margin: float = 0.0, neg_margin: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(self.distance, SNRDistance):
            raise ValueError("SignalToNoiseRatioContrastiveLoss needs SNRDistance")
        self.pos_margin, self.neg_margin = pos_margin, neg_margin

    def pull(self, near: Tensor) -> Tensor:
        """Losses of positive pairs (n,) from their distances."""
        return (near - self.pos_margin).relu()

    def push(self, near: Tensor) -> Tensor:
        """Losses of negative pairs (n,) from their distances."""
        return (self.neg_margin - near).relu()

    def default_distance(self) -> SNRDistance:
        """Signal-to-noise distance of unit vectors, finite for all rows."""
        return SignalToNoiseDistance()

    def default_reducer(self) -> AvgNonZeroReducer:
        """Mean over the pairs above 0."""
        return AvgNonZeroReducer()

    def regularization_terms(self, embeddings: Tensor) -> dict[str, Any]:
        """PML's hook: `embedding_reg_loss`, the regulariser on normalised embeddings (B, d), if there is one."""
        terms: dict[str, Any] = super().regularization_terms(self.distance.maybe_normalize(embeddings))
        return terms


class NTXentLoss(ByCosine):
    """NT-Xent as in MLRC's releases of pytorch-metric-learning, which bound each term by -log 1e-20, about 46.

    With similarities s, the positive pairs (a, p) and the negatives n of each anchor::

        L = mean over (a, p) of -log( e^{s_ap / T} / (e^{s_ap / T} + sum_n e^{s_an / T}) + 1e-20 )

    Today's class adds the smallest number of the dtype, 1.2e-38 in float32. Here the fraction is computed in log space,
    and no matrix of pairs and negatives is made.

    Args:
        temperature: T; default 0.07.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `MeanReducer`),
            `embedding_regularizer` and `embedding_reg_weight`.

    Source: Sohn, NeurIPS 2016; Chen et al., ICML 2020; pytorch-metric-learning 0.9.86.
    """

    takes_references = True

    VERSION = 2
    """Version 1 was pytorch-metric-learning's class."""

    def __init__(self, temperature: float = 0.07, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_similarity(self.distance)
        self.temperature = temperature

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-loss `loss`, one value per positive pair."""
        anchors, positives, others, negatives = pairs_of(indices_tuple, labels, ref_labels)
        if not len(anchors) or not len(others):
            return self.nothing()
        logits = self.distance(embeddings, ref_emb) / self.temperature
        is_negative = torch.zeros_like(logits, dtype=torch.bool)
        is_negative[others, negatives] = True
        repelled = logits.masked_fill(~is_negative, -torch.inf).logsumexp(1)[anchors]
        own = logits[anchors, positives]
        losses = -((own - torch.logaddexp(own, repelled)).exp() + _FLOOR).log()
        return {"loss": term(losses, (anchors, positives), "pos_pair")}


class MultiSimilarityMiner(pml_miners.MultiSimilarityMiner):
    """The miner of multi-similarity as in MLRC's releases, in which a sample counts as a positive of its own.

    It joins the pairs where a negative is nearer than `1 - epsilon`, and a sample without another positive gets its
    negatives there. Today's class leaves both out: the tighter the clusters, the more gradients differ.

    Args:
        epsilon: how much less similar a positive may be than the nearest negative, to be left out; default 0.1.
        **kwargs: those of pytorch-metric-learning's class; the distance must be a similarity.

    Source: Wang et al., CVPR 2019; pytorch-metric-learning 0.9.82 to 0.9.86.
    """

    VERSION = 2
    """Version 1 was pytorch-metric-learning's class."""

    def __init__(self, epsilon: float = 0.1, **kwargs: Any) -> None:
        super().__init__(epsilon=epsilon, **kwargs)
        require_similarity(self.distance)

    def mine(
        self, embeddings: Tensor, labels: Tensor, ref_emb: Tensor | None, ref_labels: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """PML's hook: anchors and positives, anchors and negatives."""
        similarity = self.distance(embeddings, ref_emb)
        alone = ref_emb is None or ref_emb is embeddings  # Version 3 has None.
        same: Tensor = labels.unsqueeze(1).eq(labels if alone else ref_labels)  # type: ignore[arg-type]
        itself = len(labels) if alone else 0
        if same.sum() == itself or same.all():
            nothing = labels.new_zeros(0)
            return nothing, nothing, nothing, nothing
        nearest = similarity.masked_fill(same, -torch.inf).amax(1, keepdim=True)
        farthest = similarity.masked_fill(~same, torch.inf).amin(1, keepdim=True)
        anchors, positives = (same & (similarity - self.epsilon < nearest)).nonzero().unbind(1)
        others, negatives = (~same & (similarity + self.epsilon > farthest)).nonzero().unbind(1)
        return anchors, positives, others, negatives


def mean_margin_violations(
    similarity: Tensor, positive: Tensor, negative: Tensor, pos_margin: float, neg_margin: float
) -> Tensor:
    """Mean of `pos_margin - s` over positive pairs with a smaller s, plus that of `s - neg_margin` over negative ones.

    PML's `ContrastiveLoss` with its default reducer, on whole matrices.

    Args:
        similarity: s, (B, R).
        positive: mask (B, R) of the positive pairs.
        negative: mask (B, R) of the negative pairs.
        pos_margin: smallest similarity of a positive pair that costs nothing.
        neg_margin: largest similarity of a negative pair that costs nothing.

    Returns:
        A scalar. A side without a violation counts 0.
    """
    pull = torch.where(positive, pos_margin - similarity, 0.0).relu()
    push = torch.where(negative, similarity - neg_margin, 0.0).relu()
    return _mean_above_zero(pull) + _mean_above_zero(push)


def _mean_above_zero(losses: Tensor) -> Tensor:
    return float32_sum(losses) / (losses > 0).sum().clamp(min=1)
