"""Retrieval metrics: precision@1, recall@K, R-precision, MAP@R and mAP@K (specification, section 8).

For a query whose class has R other images among the references: R-precision is the part of the R nearest that is
correct; MAP@R = (1/R) sum over i <= R of [i-th is correct] * precision@i. recall@K is 1 if a correct image is among the
K nearest, else 0. All are averaged over queries; queries with R = 0 are passed over.

mAP@1000 is Roth et al., Revisiting Training Strategies and Generalization Performance in Deep Metric Learning (2020),
whose evaluation the NIR paper follows: AP@K = (1/n) sum over i <= K of [i-th is correct] * precision@i, where n is the
number of all images of the query's class among the references. Their code (metrics/mAP_1000.py) counts the query, so
n = R + 1 where a set is compared with itself and a perfect ranking stays below 1: R/(R+1), 0.8 for classes of five.
The textbook divides by min(R, K) instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losses.plugin import Normalization
from protocols.metrics.neighbours import nearest_in_parts
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
    map_at: dict[int, float] = field(default_factory=dict)

    @property
    def scores(self) -> Scores:
        """The three metrics of MLRC as a record."""
        return Scores(precision_at_1=self.precision_at_1, r_precision=self.r_precision, map_at_r=self.map_at_r)


@dataclass(frozen=True)
class QueryScores:
    """The metrics of each of the q queries that have a correct reference, in order.

    labels: their classes, int64 (q,). mlrc: precision@1, R-precision and MAP@R, float64 (q, 3). recall_at, map_at: by
    K, float64 (q,).
    """

    labels: Tensor
    mlrc: Tensor
    recall_at: dict[int, Tensor]
    map_at: dict[int, Tensor]

    def mean(self) -> RetrievalScores:
        """Averages over the queries."""
        first, r_precision, map_at_r = self.mlrc.mean(0).tolist()
        recall = {k: values.mean().item() for k, values in self.recall_at.items()}
        average_precision = {k: values.mean().item() for k, values in self.map_at.items()}
        return RetrievalScores(first, r_precision, map_at_r, len(self.labels), recall, average_precision)

    def of_classes(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Queries of each of the sorted `classes` (c,), int64 (c,), and the mean `mlrc` of each (c, 3); 0 for none."""
        place = torch.searchsorted(classes, self.labels)
        counts = torch.bincount(place, minlength=len(classes))
        sums = torch.zeros(len(classes), 3, dtype=torch.float64).index_add(0, place, self.mlrc)
        return counts, sums / counts.clamp_min(1)[:, None]


def normalized(embeddings: Tensor, kind: Normalization = "unit") -> Tensor:
    """Embeddings (n, d) as evaluation compares them, `unit`: `v/|v|`, `ball`: `v/max(1, |v|)`."""
    norms: Tensor = torch.linalg.vector_norm(embeddings, dim=1, keepdim=True)
    return embeddings / norms.clamp_min(1.0 if kind == "ball" else 1e-12)


def retrieval_scores(
    queries: Tensor,
    query_labels: Tensor,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    recall_at: Sequence[int] = (),
    map_at: Sequence[int] = (),
) -> RetrievalScores:
    """Means of `query_scores`, with its arguments and errors."""
    return query_scores(queries, query_labels, references, reference_labels, recall_at=recall_at, map_at=map_at).mean()


def query_scores(
    queries: Tensor,
    query_labels: Tensor,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    recall_at: Sequence[int] = (),
    map_at: Sequence[int] = (),
) -> QueryScores:
    """Scores of normalised `queries` (q, d) against `references` (r, d), or against one another if there are none.

    Labels are int64. recall_at, map_at: the K of recall@K and mAP@K; a K beyond the references counts them all. Raises
    ValueError for embeddings that are not finite, and if no query has a correct reference.
    """
    if (references is None) != (reference_labels is None):
        raise ValueError("references and their labels come together")
    alone = references is None
    if references is None or reference_labels is None:
        references, reference_labels = queries, query_labels
    if not (torch.isfinite(queries).all() and torch.isfinite(references).all()):
        raise ValueError("embeddings are not finite")
    query_labels, reference_labels = query_labels.cpu(), reference_labels.cpu()
    of_class = _counted(query_labels, reference_labels)
    relevant = of_class - int(alone)
    if not (relevant > 0).any():
        raise ValueError("no query has another image of its class among the references")
    available = len(references) - int(alone)
    depth = min(max([int(relevant.max()), *recall_at, *map_at]), available)
    parts, first = [], 0
    for found in nearest_in_parts(queries, references, depth, exclude_self=alone):
        for rows in torch.arange(len(found)).split(_ROWS):
            keep = rows[relevant[first + rows] > 0]
            queried = first + keep
            labels = query_labels[queried]
            correct = reference_labels[found[keep]] == labels[:, None]
            parts.append(_scored(correct, labels, relevant[queried], of_class[queried], recall_at, map_at))
        first += len(found)
    return _joined(parts)


def sides(
    embeddings: Tensor, labels: Tensor, is_query: NDArray[np.bool_] | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Queries, their labels, gallery and its labels, as `query_scores` takes them.

    embeddings (n, d), labels (n,), is_query (n,) whether an image is a query, else it is in the gallery; None compares
    all images with one another. Raises ValueError if either side is empty.
    """
    if is_query is None:
        return embeddings, labels, None, None
    if is_query.all() or not is_query.any():
        raise ValueError("the test images need both queries and a gallery")
    chosen = torch.from_numpy(is_query)
    there = chosen.to(embeddings.device)
    return embeddings[there], labels[chosen], embeddings[~there], labels[~chosen]


def _scored(
    correct: Tensor,
    labels: Tensor,
    relevant: Tensor,
    of_class: Tensor,
    recall_at: Sequence[int],
    map_at: Sequence[int],
) -> QueryScores:
    """correct (n, depth): whether each neighbour is right. relevant, of_class (n,): the R and the n of each query."""
    near = correct[:, : int(relevant.max())] if len(relevant) else correct
    rank = torch.arange(1, near.shape[1] + 1)
    counted = (near & (rank <= relevant[:, None])).double()
    mlrc = torch.stack(
        [correct[:, 0].double(), counted.sum(1) / relevant, _precision_sums(counted) / relevant],
        dim=1,
    )
    return QueryScores(
        labels,
        mlrc,
        {k: correct[:, :k].any(1).double() for k in recall_at},
        {k: _precision_sums(correct[:, :k].double()) / of_class for k in map_at},
    )


def _precision_sums(correct: Tensor) -> Tensor:
    """Sum of precision@i over the ranks i that are right; correct (n, ranks) of 0 and 1, float64."""
    rank = torch.arange(1, correct.shape[1] + 1)
    return (correct * correct.cumsum(1) / rank).sum(1)


def _joined(parts: Sequence[QueryScores]) -> QueryScores:
    first = parts[0]
    return QueryScores(
        torch.cat([part.labels for part in parts]),
        torch.cat([part.mlrc for part in parts]),
        {k: torch.cat([part.recall_at[k] for part in parts]) for k in first.recall_at},
        {k: torch.cat([part.map_at[k] for part in parts]) for k in first.map_at},
    )


def _counted(query_labels: Tensor, reference_labels: Tensor) -> Tensor:
    """How many references share each query's label."""
    values, counts = reference_labels.unique(return_counts=True)
    place = torch.searchsorted(values, query_labels).clamp_max(len(values) - 1)
    return torch.where(values[place] == query_labels, counts[place], 0)
