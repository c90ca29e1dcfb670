"""Retrieval metrics: precision@1, recall@K, R-precision, MAP@R and mAP@K (specification, section 8).

A reference is correct if it has the class of the query. For a query with R correct references: R-precision is the
fraction of the R nearest references that is correct. MAP@R = (1/R) sum over i <= R of [i-th is correct] * precision@i.
recall@K is 1 if one of the K nearest references is correct, else 0. All are averaged over the queries with R > 0.
Of equally near references the wrong ones come first, so that no score depends on the order of the images. Where all
embeddings are equal up to rounding, no neighbour counts as correct. An embedding of zeros has no direction: as a query
it finds nothing, and as a reference it comes last.

mAP@1000 is that of Roth et al., Revisiting Training Strategies and Generalization Performance in Deep Metric Learning
(2020), whose evaluation the NIR paper follows: AP@K = (1/n) sum over i <= K of [i-th is correct] * precision@i, where n
is the number of all images of the query's class among the references. Their code (metrics/mAP_1000.py) counts the query
too. If a set is compared with itself, n = R + 1, and a perfect ranking has R/(R+1), which is 0.8 for classes of five.
Textbooks divide by min(R, K) instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losses.plugin import Normalization
from protocols.images.packing import Progress
from protocols.metrics.neighbours import checked, nearest_in_parts
from results.records.records import Scores

SCORED_ELEMENTS = 1 << 20
"""Largest number of neighbours that are scored at once."""

_COLLAPSED = 8.0
"""In units of eps: squared distances below are rounding errors of the products."""


@dataclass(frozen=True)
class QueryScores:
    """The metrics of each of the q queries that have a correct reference, in the order of the queries.

    Attributes:
        labels: The queries' classes, int64 (q,).
        mlrc: Precision@1, R-precision and MAP@R, float64 (q, 3).
        recall_at: recall@K, float64 (q,), by K.
        map_at: mAP@K, float64 (q,), by K.
    """

    labels: Tensor
    mlrc: Tensor
    recall_at: dict[int, Tensor]
    map_at: dict[int, Tensor]

    def mean(self) -> Scores:
        """Return the averages of MLRC's metrics over the queries."""
        first, r_precision, map_at_r = self.mlrc.mean(0).tolist()
        return Scores(precision_at_1=first, r_precision=r_precision, map_at_r=map_at_r)

    def of_classes(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Average the scores of each class.

        Args:
            classes: (c,), the classes in ascending order. They must contain every label.

        Returns:
            The number of queries of each class, int64 (c,), and the mean of `mlrc`, float64 (c, 3); both are 0 for a
            class without queries.
        """
        class_index = torch.searchsorted(classes, self.labels)
        counts = torch.bincount(class_index, minlength=len(classes))
        sums = torch.zeros(len(classes), 3, dtype=torch.float64).index_add(0, class_index, self.mlrc)
        return counts, sums / counts.clamp_min(1)[:, None]


def normalized(embeddings: Tensor, kind: Normalization = "unit") -> Tensor:
    """Normalise embeddings for the evaluation.

    Args:
        embeddings: (n, d).
        kind: `unit` gives `v/|v|`, `ball` gives `v/max(1, |v|)`.

    Returns:
        The normalised embeddings, (n, d).
    """
    norms: Tensor = torch.linalg.vector_norm(embeddings, dim=1, keepdim=True)
    return embeddings / norms.clamp_min(1.0 if kind == "ball" else 1e-12)


def is_collapsed(embeddings: Tensor) -> bool:
    """Return whether embeddings (n, d) are equal up to rounding, so that their distances say nothing."""
    spread, largest = (rows.square().sum(1).amax() for rows in (embeddings - embeddings[:1], embeddings))
    return bool(spread <= _COLLAPSED * torch.finfo(embeddings.dtype).eps * largest)


def query_scores(
    embeddings: Tensor,
    labels: Tensor,
    is_query: NDArray[np.bool_] | None = None,
    *,
    recall_at: Sequence[int] = (),
    map_at: Sequence[int] = (),
    progress: Progress | None = None,
) -> QueryScores:
    """Compute retrieval metrics of each query that has a correct reference.

    Args:
        embeddings: (n, d), normalised.
        labels: (n,) int64.
        is_query: (n,), whether an image is a query; the others are the references, the gallery. None compares all
            images with one another.
        recall_at: The K of recall@K. A K above the number of references counts as that number.
        map_at: The K of mAP@K, likewise.
        progress: Called with the number of queries that are done, and of all.

    Raises:
        ValueError: An embedding is not finite, there is no query or no gallery image, or no query has a correct
            reference.
    """
    embeddings, labels, single_set = checked(embeddings), labels.cpu(), is_query is None
    queries, references, query_labels, reference_labels = embeddings, embeddings, labels, labels
    if is_query is not None:
        if is_query.all() or not is_query.any():
            raise ValueError("the test images need both queries and a gallery")
        asks = torch.from_numpy(is_query)
        there = asks.to(embeddings.device)
        queries, references = embeddings[there], embeddings[~there]
        query_labels, reference_labels = labels[asks], labels[~asks]
    class_sizes = _class_sizes(query_labels, reference_labels)
    relevant = class_sizes - int(single_set)
    if not (relevant > 0).any():
        raise ValueError("no query has another image of its class among the references")
    if is_collapsed(embeddings):
        return _nothing_found(query_labels[relevant > 0], recall_at, map_at)
    # R differs from class to class, and few neighbours are found sooner than many.
    depths = relevant.clamp_min(max([0, *recall_at, *map_at])).clamp_max(len(references) - int(single_set))
    depths[relevant == 0] = 0
    parts, order = [], []
    labels_of_both, has_direction = (query_labels, reference_labels), queries.any(1).cpu()
    for query_rows, neighbours in nearest_in_parts(
        queries, _zeros_far_away(references), depths, exclude_self=single_set, labels=labels_of_both
    ):
        rows_at_once = max(1, SCORED_ELEMENTS // neighbours.shape[1])
        for rows, nearest in zip(query_rows.split(rows_at_once), neighbours.split(rows_at_once), strict=True):
            labels = query_labels[rows]
            correct = (reference_labels[nearest] == labels[:, None]) & has_direction[rows, None]
            parts.append(_scored(correct, labels, relevant[rows], class_sizes[rows], recall_at, map_at))
        order.append(query_rows)
        if progress is not None:
            progress(sum(map(len, order)), int((depths > 0).sum()))
    return _joined(parts, torch.cat(order).argsort())


def _zeros_far_away(rows: Tensor) -> Tensor:
    """Put rows of zeros farther from all others than these are from one another."""
    if (directed := rows.any(1)).all():
        return rows
    moved = rows.clone()
    moved[~directed, 0] = 4 * torch.linalg.vector_norm(rows, dim=1).max()
    return moved


def _nothing_found(labels: Tensor, recall_at: Sequence[int], map_at: Sequence[int]) -> QueryScores:
    zeros = torch.zeros(len(labels), 3, dtype=torch.float64)
    return QueryScores(labels, zeros, dict.fromkeys(recall_at, zeros[:, 0]), dict.fromkeys(map_at, zeros[:, 0]))


def _scored(
    correct: Tensor,
    labels: Tensor,
    relevant: Tensor,
    class_sizes: Tensor,
    recall_at: Sequence[int],
    map_at: Sequence[int],
) -> QueryScores:
    """Scores from `correct` (q, depth), whether each neighbour is correct, and from R and n of each query (q,)."""
    near = correct[:, : int(relevant.max())]
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
        {k: _precision_sums(correct[:, :k].double()) / class_sizes for k in map_at},
    )


def _precision_sums(correct: Tensor) -> Tensor:
    """Sum of precision@i over the ranks i that are correct, from `correct` (q, ranks) of 0 and 1, float64."""
    rank = torch.arange(1, correct.shape[1] + 1)
    return (correct * correct.cumsum(1) / rank).sum(1)


def _joined(parts: Sequence[QueryScores], order: Tensor) -> QueryScores:
    first = parts[0]
    return QueryScores(
        torch.cat([part.labels for part in parts])[order],
        torch.cat([part.mlrc for part in parts])[order],
        {k: torch.cat([part.recall_at[k] for part in parts])[order] for k in first.recall_at},
        {k: torch.cat([part.map_at[k] for part in parts])[order] for k in first.map_at},
    )


def _class_sizes(query_labels: Tensor, reference_labels: Tensor) -> Tensor:
    """Number of references with the label of each query."""
    classes, counts = reference_labels.unique(return_counts=True)
    class_index = torch.searchsorted(classes, query_labels).clamp_max(len(classes) - 1)
    return torch.where(classes[class_index] == query_labels, counts[class_index], 0)
