"""ROADMAP: a smooth upper bound of 1 - average precision (SupAP), and a calibration of similarities."""

from typing import Any, Literal

import torch
from torch import Tensor

from .base import ByCosine, already_reduced, checked_labels, elements, require_one_of, require_similarity
from .mined import refuse_mined
from .pair_losses import mean_margin_violations
from .plugin import TrainingPlugin

SupAPStep = Literal["paper", "first_release"]


class RoadmapLoss(ByCosine, TrainingPlugin):
    """Average precision of a batch with smooth ranks of the negatives, plus margins for similarities.

    With `s_ij` the cosine, and for a query q the rows P of its class, itself included, and the others N::

        rank+(i) = 1 + #{j in P, j != i: s_qj >= s_qi}             without gradient
        rank-(i) = sum_{j in N} H(s_qj - s_qi)
        L_AP     = 1 - mean_q mean_{i in P} rank+(i) / (rank+(i) + rank-(i))
        L_C      = mean of pos_margin - s over positive pairs with a smaller s
                 + mean of s - neg_margin over negative pairs with a larger s
        L        = (1 - lam) L_AP + lam L_C

    H grows without bound, so that a negative far ahead keeps a gradient::

        H(t) = sigmoid(t / tau)              t <= 0
               start + sigmoid(t / tau)      0 < t <= delta
               rho (t - delta) + offset      t > delta

    Without an `offset` H is continuous at delta. The authors' present configuration has 1.44, so that H falls by 0.05
    there. Their first release, from which the published numbers probably come, had `rho t + offset` beyond delta, with
    1.44 (`step="first_release", offset=1.44`).
    With lam = 0 the loss is SupAP alone. With 0.5 it is half the loss of the released configuration, which adds both.

    Shapes: embeddings (B, d) of any norm, labels (B,), any whole numbers; sub-losses `supap_loss` (B,) and
    `calibration_loss` (scalar). The ranks need B m B numbers for m rows per class.

    Args:
        tau: temperature of H, in cosine units; default 0.01.
        rho: slope of H beyond delta; default 100.
        delta: end of the sigmoid, in cosine units; default 0.05. None leaves the sigmoid at 0 and needs an `offset`:
            H is `rho t + offset` for all t > 0.
        start: step of H at 0; default 0.5 (the authors: 0 for iNaturalist).
        offset: H just above delta; default None (the authors' configuration: 1.44, iNaturalist 1).
        step: `paper` or `first_release`; default `paper`.
        lam: share of the calibration; default 0.5.
        pos_margin: smallest similarity of a positive pair that costs nothing; default 0.9.
        neg_margin: largest similarity of a negative pair that costs nothing; default 0.6.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `MeanReducer`),
            `embedding_regularizer` and `embedding_reg_weight`.

    Raises:
        ValueError: for a temperature or delta that is not positive, no delta and no offset, an unknown step, lam
            outside [0, 1], a distance that is not a similarity, pairs of a miner, and every batch that `checked_labels`
            refuses.

    Source: Ramzi et al., Robust and Decomposable Average Precision for Image Retrieval, NeurIPS 2021, and the authors'
    code (elias-ramzi/ROADMAP).
    """

    sub_losses = ("supap_loss", "calibration_loss")

    def __init__(
        self,
        tau: float = 0.01,
        rho: float = 100.0,
        delta: float | None = 0.05,
        start: float = 0.5,
        offset: float | None = None,
        *,
        step: SupAPStep = "paper",
        lam: float = 0.5,
        pos_margin: float = 0.9,
        neg_margin: float = 0.6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require_similarity(self.distance)
        if tau <= 0 or (delta is not None and delta <= 0):
            raise ValueError(f"tau and delta must be positive, got {tau} and {delta}")
        if delta is None and offset is None:
            raise ValueError("delta None needs an offset, as in offset=1.44")
        require_one_of(SupAPStep, "step", step)
        if not 0 <= lam <= 1:
            raise ValueError(f"lam must be in [0, 1], got {lam}")
        self.tau, self.rho, self.delta, self.start, self.offset, self.step = tau, rho, delta, start, offset, step
        self.lam, self.pos_margin, self.neg_margin = lam, pos_margin, neg_margin

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the weighted sub-losses `supap_loss` (B,) and `calibration_loss`."""
        labels = checked_labels(embeddings, labels)
        refuse_mined(indices_tuple)
        similarity = self.distance(embeddings, embeddings)
        same = labels.unsqueeze(1) == labels
        supap = (1 - self.lam) * (1 - self.average_precision(similarity, same))
        pairs = ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        calibration = mean_margin_violations(similarity, same & pairs, ~same, self.pos_margin, self.neg_margin)
        return {
            "supap_loss": elements(supap),
            **already_reduced(calibration_loss=self.lam * calibration),
        }

    def average_precision(self, similarity: Tensor, same: Tensor) -> Tensor:
        """Smooth average precision (B,) of queries among rows.

        Args:
            similarity: (B, R).
            same: mask (B, R) of the rows of a query's class, at least one for each query.
        """
        queries, positives = same.nonzero().unbind(1)
        own = similarity[queries, positives].unsqueeze(1)
        ahead, is_positive = similarity[queries] - own, same[queries]
        # The row itself is at 0, so its comparison counts the 1 of rank+.
        rank_positive = ((ahead.detach() >= 0) & is_positive).sum(1)
        rank_negative = torch.where(is_positive, 0.0, self.smooth_step(ahead)).sum(1)
        precision = rank_positive / (rank_positive + rank_negative)
        sums = similarity.new_zeros(len(similarity)).index_add(0, queries, precision)
        return sums / same.sum(1)

    def smooth_step(self, t: Tensor) -> Tensor:
        """H of differences of similarities, elementwise."""
        near = (t / self.tau).sigmoid()
        if self.delta is None:
            return torch.where(t > 0, self.rho * t + self._offset(), near)
        far = self.rho * (t if self.step == "first_release" else t - self.delta) + self._offset()
        return torch.where(t > self.delta, far, torch.where(t > 0, near + self.start, near))

    def _offset(self) -> float:
        if self.offset is not None or self.delta is None:
            return self.offset or 0.0
        return float(torch.tensor(self.delta / self.tau, dtype=torch.float64, device="cpu").sigmoid()) + self.start
