"""Pair losses of pytorch-metric-learning as here and in MLRC, a sum reducer and distances that are exact near 0."""

from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning import miners as pml_miners
from pytorch_metric_learning.distances import LpDistance, SNRDistance
from pytorch_metric_learning.reducers import BaseReducer
from pytorch_metric_learning.utils import common_functions as c_f
from pytorch_metric_learning.utils import loss_and_miner_utils as lmu
from torch import Tensor

from .base import ByCosine, FullPrecisionForward, at_least_float32, float32_sum, require_similarity, without_autocast

COPY = 1e-5  # from the authors' code of XBM: a positive pair with a cosine of 1 - COPY or more is a sample and its copy
_FLOOR = 1e-20
_ROUNDING = 32.0  # in units of eps; we measured up to 15 between equal vectors of 2048 coordinates


class BatchSumReducer(BaseReducer):
    """Sum over all pairs, divided by the batch size B: the weight of a pair does not depend on the number of pairs."""

    def pos_pair_reduction(self, losses: Tensor, indices: Any, embeddings: Tensor, labels: Tensor) -> Tensor:
        """`sum(losses) / B` for losses of positive pairs."""
        return float32_sum(losses) / len(embeddings)

    def neg_pair_reduction(self, losses: Tensor, indices: Any, embeddings: Tensor, labels: Tensor) -> Tensor:
        """`sum(losses) / B` for losses of negative pairs."""
        return float32_sum(losses) / len(embeddings)


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


class CosineContrastiveLoss(ByCosine, pml_losses.ContrastiveLoss):
    """Contrastive loss on cosines, as in the code of XBM's authors.

    With S the cosine: `[ sum_{same label, S < 1 - 1e-5} (1 - S) + sum_{other label, S > margin} S ] / B`. A positive
    pair with a larger cosine counts as a copy and is ignored. A negative pair costs S, not `S - margin`, so the loss
    jumps at the margin; its gradient is that of the usual hinge.

    Args:
        margin: a negative pair with a cosine up to this costs nothing; default 0.5.
        **kwargs: those of pytorch-metric-learning's `ContrastiveLoss`.

    Source: Wang et al., Cross-Batch Memory for Embedding Learning, CVPR 2020, as in the authors' code.
    """

    takes_references = True

    def __init__(self, margin: float = 0.5, **kwargs: Any) -> None:
        super().__init__(pos_margin=1 - COPY, neg_margin=margin, **kwargs)

    def pos_calc(self, pos_pair_dist: Tensor, margin: float) -> Tensor:
        """Losses of positive pairs from their cosines, elementwise; `margin` is 1 - 1e-5."""
        return torch.where(pos_pair_dist < margin, 1 - pos_pair_dist, 0.0)

    def neg_calc(self, neg_pair_dist: Tensor, margin: float) -> Tensor:
        """Losses of negative pairs from their cosines, elementwise."""
        return torch.where(neg_pair_dist > margin, neg_pair_dist, 0.0)

    def get_default_reducer(self) -> BatchSumReducer:
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


class SignalToNoiseRatioContrastiveLoss(FullPrecisionForward, pml_losses.SignalToNoiseRatioContrastiveLoss):
    """Contrastive loss on signal-to-noise distances, with a regulariser on the vectors that the distance compares.

    With unit embeddings x, `d(a, b) = Var(a - b) / Var(a)` and the regulariser's weight w::

        L = mean of max(0, d - pos_margin) over positive pairs above 0
          + mean of max(0, neg_margin - d) over negative pairs above 0
          + w * embedding_regularizer(x)                    (`ZeroMeanRegularizer`: mean_i |sum_k x_ik|)

    pytorch-metric-learning 0.9.86, and so MLRC, computes the last term on unit embeddings. The current class of the
    same name computes it on raw embeddings. If the distance does not normalise, all terms use raw embeddings. From a
    row whose coordinates are all equal d is 0 here, and not finite in both releases.

    Args:
        **kwargs: those of pytorch-metric-learning's class: `pos_margin`, `neg_margin`, `embedding_regularizer`, ...

    Source: Yuan et al., Signal-to-noise Ratio, CVPR 2019; pytorch-metric-learning 0.9.86.
    """

    takes_references = True

    VERSION = 3
    """Version 1 was pytorch-metric-learning's class, version 2 not finite for a row of equal coordinates."""

    def get_default_distance(self) -> SNRDistance:
        """Signal-to-noise distance of unit vectors, finite for all rows."""
        return SignalToNoiseDistance()

    def add_embedding_regularization_to_loss_dict(self, loss_dict: dict[str, Any], embeddings: Tensor) -> None:
        """PML's hook: add `embedding_reg_loss`, the regulariser on normalised embeddings (B, d), if there is one."""
        super().add_embedding_regularization_to_loss_dict(loss_dict, self.distance.maybe_normalize(embeddings))


class NTXentLoss(ByCosine, pml_losses.BaseMetricLossFunction):
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

    distance: Any

    def __init__(self, temperature: float = 0.07, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_similarity(self.distance)
        self.temperature = temperature

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-loss `loss`, one value per positive pair."""
        c_f.labels_or_indices_tuple_required(labels, indices_tuple)
        anchors, positives, others, negatives = lmu.convert_to_pairs(indices_tuple, labels, ref_labels)
        if not len(anchors) or not len(others):
            nothing: dict[str, Any] = self.zero_losses()
            return nothing
        logits = self.distance(embeddings, ref_emb) / self.temperature
        is_negative = torch.zeros_like(logits, dtype=torch.bool)
        is_negative[others, negatives] = True
        repelled = logits.masked_fill(~is_negative, -torch.inf).logsumexp(1)[anchors]
        own = logits[anchors, positives]
        losses = -((own - torch.logaddexp(own, repelled)).exp() + _FLOOR).log()
        return {"loss": {"losses": losses, "indices": (anchors, positives), "reduction_type": "pos_pair"}}


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
        self, embeddings: Tensor, labels: Tensor, ref_emb: Tensor, ref_labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """PML's hook: anchors and positives, anchors and negatives."""
        similarity = self.distance(embeddings, ref_emb)
        same = labels.unsqueeze(1) == ref_labels
        itself = len(labels) if embeddings is ref_emb else 0
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
