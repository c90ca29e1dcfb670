"""Retrieval metrics: precision@1, recall@K, R-precision and MAP@R (specification, section 8).

For a query whose class has R other images among the references: R-precision is the part of the R nearest that is
correct; MAP@R = (1/R) sum over i <= R of [i-th is correct] * precision@i. Both are averaged over queries; queries with
R = 0 are passed over. recall@K is the part of queries with a correct image among the K nearest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from losses.plugin import Normalization
from protocols.metrics.neighbours import nearest
from results.records import Scores

_ROWS = 4096


@dataclass(frozen=True)
class RetrievalScores:
    """Fractions of 1; `n_queries` had at least one correct reference."""

    precision_at_1: float
    r_precision: float
    map_at_r: float
    n_queries: int
    recall_at: dict[int, float] = field(default_factory=dict)

    @property
    def scores(self) -> Scores:
        """The three metrics of MLRC as a record."""
        return Scores(precision_at_1=self.precision_at_1, r_precision=self.r_precision, map_at_r=self.map_at_r)


def normalized(embeddings: Tensor, kind: Normalization = "unit") -> Tensor:
    """Embeddings (n, d) as evaluation compares them, `unit`: v/|v|, `ball`: v/max(1, |v|)."""
    norms: Tensor = torch.linalg.vector_norm(embeddings, dim=1, keepdim=True)
    return embeddings / norms.clamp_min(1.0 if kind == "ball" else 1e-12)


def retrieval_scores(
    queries: Tensor,
    query_labels: Tensor,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    recall_at: Sequence[int] = (),
) -> RetrievalScores:
    """Scores of normalised `queries` (q, d) against `references` (r, d), or against one another if there are none.

    Labels are int64. Raises ValueError for embeddings that are not finite, and if no query has a correct reference.
    """
    if (references is None) != (reference_labels is None):
        raise ValueError("references and their labels come together")
    alone = references is None
    if references is None or reference_labels is None:
        references, reference_labels = queries, query_labels
    if not (torch.isfinite(queries).all() and torch.isfinite(references).all()):
        raise ValueError("embeddings are not finite")
    query_labels, reference_labels = query_labels.cpu(), reference_labels.cpu()
    relevant = _relevant(query_labels, reference_labels) - int(alone)
    if not (relevant > 0).any():
        raise ValueError("no query has another image of its class among the references")
    available = len(references) - int(alone)
    depth = min(max([int(relevant.max()), *recall_at]), available)
    sums = _Sums(recall_at)
    found = nearest(queries, references, depth, exclude_self=alone)
    for rows in torch.arange(len(queries)).split(_ROWS):
        keep = rows[relevant[rows] > 0]
        correct = reference_labels[found[keep]] == query_labels[keep][:, None]
        sums.add(correct, relevant[keep])
    return sums.mean()


class _Sums:
    """Metric sums over queries, in float64."""

    def __init__(self, recall_at: Sequence[int]) -> None:
        self.n = 0
        self.totals = torch.zeros(3, dtype=torch.float64)
        self.hits = dict.fromkeys(recall_at, 0)

    def add(self, correct: Tensor, relevant: Tensor) -> None:
        """correct (n, depth) whether each neighbour is right, relevant (n,) the R of each query."""
        rank = torch.arange(1, correct.shape[1] + 1)
        counted = (correct & (rank <= relevant[:, None])).double()
        precision = counted.cumsum(1) / rank
        self.n += len(correct)
        self.totals += torch.stack(
            [
                correct[:, 0].double().sum(),
                (counted.sum(1) / relevant).sum(),
                ((counted * precision).sum(1) / relevant).sum(),
            ]
        )
        for k in self.hits:
            self.hits[k] += int(correct[:, :k].any(1).sum())

    def mean(self) -> RetrievalScores:
        first, r_precision, map_at_r = (self.totals / self.n).tolist()
        recall = {k: hits / self.n for k, hits in self.hits.items()}
        return RetrievalScores(first, r_precision, map_at_r, self.n, recall)


def _relevant(query_labels: Tensor, reference_labels: Tensor) -> Tensor:
    """How many references share each query's label."""
    values, counts = reference_labels.unique(return_counts=True)
    place = torch.searchsorted(values, query_labels).clamp_max(len(values) - 1)
    return torch.where(values[place] == query_labels, counts[place], 0)
