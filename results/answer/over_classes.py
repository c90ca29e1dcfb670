"""How much scores and differences depend on the test classes: intervals by a bootstrap of the classes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from results.answer.answers import Answer
from results.answer.intervals import t_quantile
from results.answer.pair_tests import Numbers
from results.records.frame import EMBEDDING_KINDS, EmbeddingKind
from results.records.records import ClassScores, RunRecord
from results.spec.mlrc_constants import HEADLINE_METRICS

RESAMPLES = 2000


def class_half_widths(
    queries: npt.ArrayLike, scores: npt.ArrayLike, pairs: Sequence[tuple[int, int]] | None = None
) -> Numbers:
    """Return half widths of the 95 % intervals of scores over the test classes, or of differences of two of them.

    The classes are drawn with replacement, 2,000 times with a fixed seed. As in the test, a score is the mean over all
    their queries. The deviation of the draws is multiplied by sqrt(c / (c - 1)) and by Student's t with c - 1 degrees
    of freedom. A class is drawn again as queries and not as what is retrieved, so classes that confuse each other make
    the interval of a single score short; in differences most of that cancels (docs/comparisons.md has the coverage).

    Args:
        queries: Number of queries of each class, (c,). Classes without one count for nothing.
        scores: Mean score of each class, (c, k).
        pairs: Numbers of the two scores of each difference; None takes the scores themselves.

    Returns:
        A half width for each score or pair; infinite for a single class.
    """
    counts = np.asarray(queries, dtype=float)
    parts = np.column_stack([counts, counts[:, None] * np.asarray(scores)])[counts > 0]
    classes, generator = len(parts), np.random.default_rng(0)
    times = (np.bincount(generator.integers(classes, size=classes), minlength=classes) for _ in range(RESAMPLES))
    sums = np.array([repeats @ parts for repeats in times])
    resampled = sums[:, 1:] / sums[:, :1]
    if pairs is not None:
        first, second = zip(*pairs, strict=True)
        resampled = resampled[:, first] - resampled[:, second]
    if classes < 2:
        return np.full(resampled.shape[1], np.inf)
    scale = t_quantile(0.975, classes - 1) * (classes / (classes - 1)) ** 0.5
    return np.asarray(scale * resampled.std(axis=0, ddof=1))


def with_class_intervals(found: Answer, records: Mapping[str, Sequence[RunRecord]]) -> Answer:
    """Give the pairs of an answer their intervals over the test classes, if the runs have class scores.

    Args:
        records: The runs by method.
    """
    runs = {key: _typical_runs(found, key, records[key]) for key in found.compared}
    tested = {run.class_scores.queries if run.class_scores else () for own in runs.values() for run in own}
    measured = found.question.embeddings in EMBEDDING_KINDS and found.question.score in HEADLINE_METRICS
    if not found.pairs or not measured or len(tested) != 1 or tested == {()}:
        return found
    means = [
        np.mean([_score(found, run.class_scores) for run in own if run.class_scores], axis=0) for own in runs.values()
    ]
    place = {key: number for number, key in enumerate(runs)}
    pairs = [(place[pair.a], place[pair.b]) for pair in found.pairs]
    widths = class_half_widths(tested.pop(), np.column_stack(means), pairs).tolist()
    return replace(
        found, pairs=tuple(replace(pair, over_classes=width) for pair, width in zip(found.pairs, widths, strict=True))
    )


def score_over_classes(runs: Sequence[RunRecord], embeddings: EmbeddingKind, metric: str) -> tuple[float, int] | None:
    """Return the half width of the 95 % interval of a mean score of runs over the test classes, and their number.

    None if the runs have no scores of classes, not of this metric, or of several test sets.
    """
    known = [run.class_scores for run in runs if run.class_scores]
    if not known or metric not in HEADLINE_METRICS or len({one.queries for one in known}) > 1:
        return None
    scores = np.mean([[getattr(row, metric) for row in getattr(one, embeddings)] for one in known], axis=0)
    (width,) = class_half_widths(known[0].queries, scores[:, None]).tolist()
    return width, sum(count > 0 for count in known[0].queries)


def _typical_runs(found: Answer, method: str, records: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs of a method, without those of searches that failed, or without runs that failed."""
    own, means = found.values[method], {key: float(np.mean(runs)) for key, runs in found.runs[method].items()}
    by_search = own.planned.searches > 0
    return [run for run in records if (means[run.search] if by_search else _score(found, run)) not in own.failed]


def _score(found: Answer, scored: RunRecord | ClassScores) -> Any:
    """The asked score of a run, or those of its classes."""
    scores = getattr(scored, found.question.embeddings)
    if isinstance(scores, tuple):
        return [getattr(one, found.question.score) for one in scores]
    return getattr(scores, found.question.score)
