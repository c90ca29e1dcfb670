"""Intervals over test classes: how much a mean would change if other classes had been tested.

Intervals over runs measure how reproducible a training is on the same test classes. Intervals over classes measure how
well it generalises to new classes. Classes are drawn with replacement. Each class is weighted with its number of
queries, because the metrics are means over images. Intervals are BCa (Efron, Journal of the American Statistical
Association 82(397), 1987). scipy's bootstrap gives the same intervals, but its jackknife needs memory for the square of
SOP's 11,316 classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from results.records.records import RunRecord, Scores
from results.statistics.run_values import EmbeddingKind

Array = npt.NDArray[np.float64]

_DRAWS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class ClassInterval:
    """A mean, or a difference of two means, with its BCa interval over test classes.

    Attributes:
        mean: The mean or the difference, a fraction of 1.
        low: Lower end of the interval; None, as is `high`, with fewer than two classes.
        classes: Number of test classes with at least one query.
        runs: Number of runs that the mean is taken over; for a difference, the smaller of the two numbers.
    """

    mean: float
    low: float | None
    high: float | None
    classes: int
    runs: int
    resamples: int


def class_interval(
    records: Sequence[RunRecord],
    metric: str = "map_at_r",
    kind: EmbeddingKind = "concatenated",
    *,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> ClassInterval:
    """Compute the interval of a method's mean over its runs.

    Args:
        records: The method's runs, with class scores. A ValueError says if there is none, if one lacks class scores, or
            if they were tested on different classes.
        metric: One of the headline metrics.
        kind: Kind of the tested embeddings.
        resamples: Number of draws of test classes.
        seed: Seed of the draws; equal arguments give equal intervals.
        confidence: Confidence level, a fraction of 1.
    """
    queries, scores = _class_means(records, metric, kind)
    return _interval(queries, scores, len(records), resamples, seed, confidence)


def class_difference(
    a: Sequence[RunRecord],
    b: Sequence[RunRecord],
    metric: str = "map_at_r",
    kind: EmbeddingKind = "concatenated",
    *,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> ClassInterval:
    """Compute the interval of the mean of method a minus the mean of method b. Both means use the same drawn classes.

    The other arguments are those of `class_interval`. A ValueError says if the methods were tested on different
    classes.
    """
    queries, scores_a = _class_means(a, metric, kind)
    queries_b, scores_b = _class_means(b, metric, kind)
    if not np.array_equal(queries, queries_b):
        raise ValueError(f"{a[0].method} and {b[0].method} were tested on different classes; they cannot be paired")
    return _interval(queries, scores_a - scores_b, min(len(a), len(b)), resamples, seed, confidence)


def _class_means(records: Sequence[RunRecord], metric: str, kind: EmbeddingKind) -> tuple[Array, Array]:
    queries, scores = scores_by_class(records, metric, kind)
    return queries, scores.mean(axis=0)


def scores_by_class(records: Sequence[RunRecord], metric: str, kind: EmbeddingKind) -> tuple[Array, Array]:
    """Return the numbers of queries (classes,) and the scores of every run on every test class (runs, classes)."""
    if metric not in Scores.model_fields:
        raise ValueError(f"class scores hold {', '.join(Scores.model_fields)}, not {metric}")
    if not records:
        raise ValueError("an interval over classes needs at least one run")
    rows: list[list[float]] = []
    queries: tuple[int, ...] = ()
    for record in records:
        if record.class_scores is None:
            raise ValueError(f"{record.name} of {record.method} was kept without class scores; evaluate it again")
        queries = queries or record.class_scores.queries
        if record.class_scores.queries != queries:
            raise ValueError(f"{record.name} of {record.method} was tested on other classes than the first run")
        rows.append([getattr(scores, metric) for scores in getattr(record.class_scores, kind)])
    return np.array(queries, dtype=float), np.array(rows)


def _interval(queries: Array, scores: Array, runs: int, resamples: int, seed: int, confidence: float) -> ClassInterval:
    mean, tested = float(queries @ scores / queries.sum()), queries > 0
    low, high = _bca(queries[tested], scores[tested], resamples, seed, confidence)
    return ClassInterval(mean, low, high, int(np.count_nonzero(tested)), runs, resamples)


def _bca(
    queries: Array, scores: Array, resamples: int, seed: int, confidence: float
) -> tuple[float | None, float | None]:
    """Both ends of the interval of the weighted mean of `scores`; every class has queries."""
    if len(queries) < 2:
        return None, None
    drawn = _drawn_means(queries, scores, resamples, np.random.default_rng(seed))
    estimate = float(queries @ scores / queries.sum())
    below = (np.mean(drawn < estimate) + np.mean(drawn <= estimate)) / 2
    if np.ptp(drawn) <= 1e-12 * np.abs(scores).max():
        return estimate, estimate
    # Jackknife: the mean without each class in turn. Its skewness gives the acceleration, the change of the spread
    # with the mean.
    without = (queries @ scores - queries * scores) / (queries.sum() - queries)
    deviations = without.mean() - without
    acceleration = float((deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5))
    bias = special.ndtri(np.clip(below, 1 / (resamples + 1), resamples / (resamples + 1)))
    tails = bias + special.ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    low, high = np.quantile(drawn, special.ndtr(bias + tails / (1 - acceleration * tails)))
    return float(low), float(high)


def _drawn_means(queries: Array, scores: Array, resamples: int, generator: np.random.Generator) -> Array:
    """Weighted means of `resamples` draws; each draw has as many classes as there are test classes."""
    count, products = len(queries), queries * scores
    at_once = max(1, _DRAWS_AT_ONCE // count)
    means: list[npt.NDArray[Any]] = []
    for start in range(0, resamples, at_once):
        chosen = generator.integers(count, size=(min(at_once, resamples - start), count))
        means.append(products[chosen].sum(axis=1) / queries[chosen].sum(axis=1))
    return np.concatenate(means)
