"""Contextual loss: how much the neighbours of two rows agree, as a similarity that the labels judge."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from .base import ByCosine, already_reduced, checked_labels, elements, require_similarity
from .mined import refuse_mined
from .pair_losses import mean_margin_violations
from .plugin import TrainingPlugin

_SLOPE = 10.0
"""Of the steps, for the gradient: the authors' value."""


class ContextualLoss(ByCosine, TrainingPlugin):
    """Rows are alike in context if they share neighbours and their close neighbours share them too.

    With s_ij the cosine, `d_ij = max(0, 2 - 2 s_ij)` and v_r(i) the r-th smallest of row i of d, of which the first is
    the row's own 0::

        N_ij = [d_ij <= v_k(i) + eps],    M = 1 - N
        W_ij = N_ij / 2 ((N N')_ij / sum_l N_il + (M M')_ij / sum_l M_il)
        Q_ij = [d_ij <= v_{k // 2}(i) + eps],    R_ij = Q_ij Q_ji
        J    = (A + A') / 2,    A_ij = (R W)_ij / sum_l R_il
        L_X  = 1/B^2 sum_{i != j} (1 - J_ij)^2 if y_i = y_j, else J_ij^2
        L_C  = mean of pos_margin - s over positive pairs with a smaller s
             + mean of s - neg_margin over negative pairs with a larger s
        L_R  = (mean of all s_ij - reg_similarity)^2
        L    = context_weight L_X + (1 - context_weight) L_C + gamma L_R

    The steps are straight-through: [d <= v + eps] is 0 or 1 with the gradient -10 in d, everywhere. So the gradient of
    L_X is not that of its values, which are constant almost everywhere. v and the sums under N and M are constants.

    This is the authors' code for 224 pixels, whose `lam` is `1 - context_weight`. In their code for 256 pixels `lam` is
    the weight of L_X, and that of L_C is `1 - lam - gamma`. That loss is this one times `1 - gamma`, with
    `lam / (1 - gamma)` as context_weight and `gamma / (1 - gamma)` as gamma.

    With `head_size` the loss sees unit embeddings through a learned linear map without bias, as in the published
    results of CUB and Cars with 224 pixels. Evaluation compares the embeddings themselves.

    Where the authors' code fails or gives NaN: k counts at most the rows of the batch, and a sum over an empty M is 0.
    M is empty where all rows are neighbours, as early in a training with nearly equal embeddings.

    Shapes: embeddings (B, d) of any norm, labels (B,), any whole numbers; sub-losses `context_loss` (B,),
    `contrastive_loss` and `reg_loss` (scalars).

    Args:
        k: neighbours of a row, itself included; default 4. Take the number of images per class.
        eps: how much farther a row may be than the k-th to be a neighbour, in d; default 0.05 (the authors: CUB 0.04).
        context_weight: share of L_X; default 0.8 (the authors: CUB 0.95).
        gamma: weight of L_R; default 0.1.
        reg_similarity: the mean cosine that L_R asks for; default 0.3.
        pos_margin: smallest cosine of a positive pair that costs nothing; default 0.75.
        neg_margin: largest cosine of a negative pair that costs nothing; default 0.6.
        head_size: dimensions after the linear map; default 0, without one (the authors: CUB and Cars 2048).
        embedding_size: d, which a head needs.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `MeanReducer`),
            `embedding_regularizer` and `embedding_reg_weight`.

    Raises:
        ValueError: for k below 2, a negative eps or gamma, context_weight outside [0, 1], a head without
            embedding_size, a distance that is not a similarity, pairs of a miner, and every batch that `checked_labels`
            refuses.

    Source: Liao et al., Supervised Metric Learning to Rank for Retrieval via Contextual Similarity Optimization,
    ICML 2023, and the settings of the authors' code (Chris210634/metric-learning-using-contextual-similarity).
    """

    sub_losses = ("context_loss", "contrastive_loss", "reg_loss")

    def __init__(
        self,
        k: int = 4,
        eps: float = 0.05,
        context_weight: float = 0.8,
        gamma: float = 0.1,
        reg_similarity: float = 0.3,
        *,
        pos_margin: float = 0.75,
        neg_margin: float = 0.6,
        head_size: int = 0,
        embedding_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require_similarity(self.distance)
        if k < 2:
            raise ValueError(f"k must be at least 2, because k // 2 neighbours are close ones, got {k}")
        if eps < 0 or gamma < 0:
            raise ValueError(f"eps and gamma must not be negative, got {eps} and {gamma}")
        if not 0 <= context_weight <= 1:
            raise ValueError(f"context_weight must be in [0, 1], got {context_weight}")
        self.k, self.eps, self.context_weight, self.gamma = k, eps, context_weight, gamma
        self.reg_similarity, self.pos_margin, self.neg_margin = reg_similarity, pos_margin, neg_margin
        self.embedding_size = embedding_size if head_size else None
        self.head = _head(embedding_size, head_size) if head_size else None

    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """The head at twice `lr`, as the authors' at twice the rate of the network."""
        return super().param_groups(2 * lr, weight_decay)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the weighted sub-losses `context_loss` (B,), `contrastive_loss` and `reg_loss`."""
        labels = checked_labels(embeddings, labels, embedding_size=self.embedding_size)
        refuse_mined(indices_tuple)
        rows = embeddings
        if self.head is not None:
            rows = normalize(embeddings, dim=1) @ self.head.weight.to(embeddings.dtype).T
        similarity = self.distance(rows, rows)
        same, others = labels.unsqueeze(1) == labels, ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        contrastive = mean_margin_violations(similarity, same & others, ~same, self.pos_margin, self.neg_margin)
        regularizer = (similarity.mean() - self.reg_similarity).square()
        context = (self.contextual_similarity(similarity) - same.to(similarity.dtype)).square()
        context = self.context_weight * torch.where(others, context, 0.0).mean(1)
        return {
            "context_loss": elements(context),
            **already_reduced(
                contrastive_loss=(1 - self.context_weight) * contrastive, reg_loss=self.gamma * regularizer
            ),
        }

    def contextual_similarity(self, similarity: Tensor) -> Tensor:
        """J (B, B) of cosines (B, B)."""
        distances = (2 - 2 * similarity).relu()
        ascending = distances.detach().sort(dim=1).values
        near = self._neighbours(distances, ascending, self.k)
        far = 1 - near
        shared = _per_row(near @ near.T, near.detach()) + _per_row(far @ far.T, far.detach())
        weights = shared * near / 2
        close = self._neighbours(distances, ascending, self.k // 2)
        mutual = close * close.T
        agreement = _per_row(mutual @ weights, mutual)
        return (agreement + agreement.T) / 2

    def _neighbours(self, distances: Tensor, ascending: Tensor, rank: int) -> Tensor:
        farthest = ascending[:, min(rank, len(ascending)) - 1].unsqueeze(1)
        within = (distances.detach() <= farthest + self.eps).to(distances.dtype)
        return within - _SLOPE * (distances - distances.detach())


def _head(embedding_size: int | None, head_size: int) -> nn.Linear:
    if embedding_size is None or head_size < 0:
        raise ValueError(f"a head of {head_size} dimensions needs a positive size, and embedding_size")
    return nn.Linear(embedding_size, head_size, bias=False)


def _per_row(values: Tensor, counted: Tensor) -> Tensor:
    """Values (B, B) divided by the sums of the rows of `counted` (B, B); a row without any has a sum of 0 above."""
    sums = counted.sum(1, keepdim=True)
    return values / torch.where(sums > 0, sums, 1.0)
