"""A method against itself: how often tests call its searches different, and where the variance of a run comes from.

All searches have the same method and the same budget, so every claim of a difference between them is wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from results.records.records import RunRecord
from results.statistics.class_bootstrap import scores_by_class
from results.statistics.comparison_result import ComparedPair, MethodValues
from results.statistics.method_comparison import ALPHA, compare_methods
from results.statistics.run_values import EmbeddingKind, SearchKey
from results.statistics.search_deviation import SearchDeviation

T_TEST, PAIRED_T_TEST, COMPARISON = "t-test over runs", "paired t-test over runs", "the suite's comparison"
MOST_SPLITS = 2_000
"""Splits that are tried for each number of searches; where fewer are possible, all of them."""


class VarianceComponents(NamedTuple):
    """Variances of a run's score, as fractions of 1 squared.

    Attributes:
        search: Between searches: of the expected score of the setting that a search finds.
        run: Between runs of one setting.
        classes: Over the choice of test classes. It is the same for two methods on the same classes, so most of it
            cancels out of their difference.
    """

    search: float
    run: float
    classes: float


@dataclass(frozen=True)
class WrongCalls:
    """How often one method was called different from itself.

    Attributes:
        searches: Searches on each side.
        splits: Number of ways in which the searches were split into two sides.
        shares: Share of the splits that a test calls different at the 5 % level, by test.
        equal: Share of the splits that the suite's comparison calls equal, which is true.
    """

    searches: int
    splits: int
    shares: Mapping[str, float]
    equal: float


def variance_components(
    runs: Mapping[SearchKey, Sequence[float]], records: Sequence[RunRecord], metric: str, kind: EmbeddingKind
) -> VarianceComponents:
    """Estimate the components of variance by the analysis of variance of a nested design.

    Every search has equally many runs, at least two. The class scores of the records give the part of the classes.
    """
    values = _table(runs)
    within = float(values.var(axis=1, ddof=1).mean())
    between = float(values.mean(axis=1).var(ddof=1))
    return VarianceComponents(max(0.0, between - within / values.shape[1]), within, _of_classes(records, metric, kind))


def search_variance_interval(runs: Mapping[SearchKey, Sequence[float]]) -> tuple[float, float]:
    """Return a 95 % interval of the variance between searches, by Williams (Biometrika 49, 1962).

    It is for normal searches and normal runs, and a little too wide where runs vary as much as searches.
    """
    values = _table(runs)
    searches, repeats = values.shape
    between, within = searches - 1, searches * (repeats - 1)
    of_search = repeats * float(values.mean(axis=1).var(ddof=1))
    of_run = float(values.var(axis=1, ddof=1).mean())
    ends = []
    for quantile in (0.975, 0.025):
        excess = of_search - of_run * float(stats.f.ppf(quantile, between, within))
        ends.append(between * max(0.0, excess) / (repeats * float(stats.chi2.ppf(quantile, between))))
    return ends[0], ends[1]


def wrong_calls(runs: Mapping[SearchKey, Sequence[float]], searches: int, seed: int = 0) -> WrongCalls:
    """Split the searches of one method into two sides in many ways, and test the sides against each other.

    The t-tests take all runs of a side as independent, as papers do. The suite's comparison takes the means of the
    searches. With one search on each side it assumes their deviation from the other searches, as from a record.
    """
    values = _table(runs)
    splits = list(_splits(len(values), searches, np.random.default_rng(seed)))
    called = {T_TEST: 0, PAIRED_T_TEST: 0, COMPARISON: 0}
    equal = 0
    for side_a, side_b in splits:
        a, b = values[list(side_a)].ravel(), values[list(side_b)].ravel()
        called[T_TEST] += bool(stats.ttest_ind(a, b).pvalue < ALPHA)
        called[PAIRED_T_TEST] += bool(stats.ttest_rel(a, b).pvalue < ALPHA)
        pair = _compared(values, side_a, side_b)
        called[COMPARISON] += pair.better is not None
        equal += pair.size == "within"
    shares = {test: count / len(splits) for test, count in called.items()}
    return WrongCalls(searches, len(splits), shares, equal / len(splits))


def _compared(values: npt.NDArray[np.float64], side_a: Sequence[int], side_b: Sequence[int]) -> ComparedPair:
    if len(side_a) > 1:
        sides = {name: values[list(side)].mean(axis=1) for name, side in (("a", side_a), ("b", side_b))}
        return compare_methods({name: MethodValues(tuple(means), means.size) for name, means in sides.items()}).pairs[0]
    others = np.delete(values, [*side_a, *side_b], axis=0).mean(axis=1)
    assumed = SearchDeviation(float(others.std(ddof=1)), len(others) - 1)
    single = {"a": values[side_a[0]], "b": values[side_b[0]]}
    given = {name: MethodValues(tuple(own), own.size) for name, own in single.items()}
    return compare_methods(given, "single search", assumed=assumed).pairs[0]


def _table(runs: Mapping[SearchKey, Sequence[float]]) -> npt.NDArray[np.float64]:
    """Scores with one row per search."""
    numbers = {len(values) for values in runs.values()}
    if len(runs) < 2 or len(numbers) != 1 or min(numbers) < 2:
        raise ValueError(
            "a method is compared with itself over at least two searches with equally many runs, two or more"
        )
    return np.array([list(values) for values in runs.values()], dtype=np.float64)


def _splits(total: int, each: int, generator: np.random.Generator) -> Sequence[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of disjoint sets of `each` of `total` searches: all of them, or `MOST_SPLITS` random ones."""
    if each < 1 or 2 * each > total:
        raise ValueError(f"two sides with {each} searches each need {2 * each} searches, and there are {total}")
    firsts = list(combinations(range(total), each))
    rest = len(list(combinations(range(total - each), each)))
    if len(firsts) * rest // 2 <= MOST_SPLITS:
        return [
            (first, second)
            for first in firsts
            for second in combinations([number for number in range(total) if number not in first], each)
            if first < second
        ]
    drawn = [generator.permutation(total) for _ in range(MOST_SPLITS)]
    return [(tuple(order[:each].tolist()), tuple(order[each : 2 * each].tolist())) for order in drawn]


def _of_classes(records: Sequence[RunRecord], metric: str, kind: EmbeddingKind) -> float:
    """Variance of the mean over classes that are drawn with replacement, by the delta method; mean over the runs."""
    queries, scores = scores_by_class(records, metric, kind)
    tested = queries > 0
    weights, scores = queries[tested] / queries.sum(), scores[:, tested]
    count = len(weights)
    off = scores - (scores @ weights)[:, None]
    return float(((weights * off) ** 2).sum(axis=1).mean() * count / (count - 1))
