"""Tests of pairs of methods: differences of means with their standard errors and degrees of freedom, on arrays.

The data are units: the means of complete searches, or single runs where nothing was searched. Methods are on the last
axis of means and variances, and the pairs of `pairs_of` on the last axis of results; axes before it are tables, so
that a simulation can pass many at once.

Three searches say little about a method's own variance, and the variances of methods differ. `pool_or_own` takes the
larger of the method's own variance and the pooled one, raised by a factor that a noisy method costs whose few searches
happen to agree. The factor, and the bound of the degrees, were chosen by simulation; `make calibrate` measures what
they achieve (docs/comparisons.md).

The correction of p values is for the comparisons that were asked for: all pairs, each with the best, each with one
method. With unequal variances an exact level for each family does not exist. Its factors were chosen in the same way:
at most 5 % of simulated tables of ordinary searches have a wrong claim.

Where the datasets are the sample, the answer is about datasets like them (Demsar, Journal of Machine Learning Research
7, 2006). The median difference is that of Hodges and Lehmann: the median of the means of every two differences. The
ends of its interval are such means too, those that the exact distribution of the ranks leaves at 95 %.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

Numbers = npt.NDArray[np.float64]

SHARE_OF_BETTER = 0.75
"""Share of the level for "better" and "beyond the margin". The rest is for "within the margin"."""

MOST_DEGREES = 40.0
"""No test has more degrees of freedom: many methods pool many searches, but not all vary equally."""

POWER = 0.8
"""Probability with which the smallest detectable difference is called better."""


def power_words(compare: str) -> str:
    """Write this probability; against a best that the data choose, it is about 70 %."""
    return "about 70 %" if compare == "best" else f"{100 * POWER:g} %"


@dataclass(frozen=True)
class PairDifferences:
    """The difference of every pair, with what a t-test needs.

    Attributes:
        difference: Mean of the first method minus mean of the second.
        error: Standard error, above 0.
        degrees: Degrees of freedom; NaN without a test.
    """

    difference: Numbers
    error: Numbers
    degrees: Numbers

    def at(self, places: Any) -> "PairDifferences":
        """Return those at some places."""
        return PairDifferences(self.difference[places], self.error[places], self.degrees[places])

    @property
    def p(self) -> Numbers:
        """Two-sided p values of no difference; NaN without a test."""
        return 2 * self._tail(np.abs(self.difference))

    def p_equal(self, margin: float) -> Numbers:
        """Compute p values of equality within the margin by two one-sided tests (Schuirmann 1987)."""
        return self._tail(margin - np.abs(self.difference))

    def p_beyond(self, margin: float) -> Numbers:
        """Compute one-sided p values of a difference beyond the margin, in the direction of the means."""
        return self._tail(np.abs(self.difference) - margin)

    def half_width(self) -> Numbers:
        """Half the width of each difference's own 95 % interval, which is not corrected for other pairs."""
        return np.asarray(special.stdtrit(self.degrees, 0.975) * self.error)

    def _tail(self, distance: Numbers) -> Numbers:
        return np.asarray(special.stdtr(self.degrees, -distance / self.error))


@dataclass(frozen=True)
class MeanErrors:
    """Means of methods with the squared errors that a test takes for them, and their degrees of freedom.

    Attributes:
        pool: Number of the pool of methods that a method's variance is from. Methods of one pool have equal degrees.
    """

    means: Numbers
    squares: Numbers
    degrees: Numbers
    pool: npt.NDArray[np.intp] | None = None

    def pairs(self) -> PairDifferences:
        """Compare every method with every later one. Between two pools the degrees are Satterthwaite's."""
        first, second = pairs_of(self.means.shape[-1])
        squares = self.squares[..., first] + self.squares[..., second]
        degrees = self.degrees[..., first]
        if self.pool is not None:
            parts = ((self.squares[..., side] / squares) ** 2 / self.degrees[..., side] for side in (first, second))
            degrees = np.where(self.pool[first] == self.pool[second], degrees, 1 / sum(parts))
        return PairDifferences(self.means[..., first] - self.means[..., second], np.sqrt(squares), degrees)


def pairs_of(methods: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the numbers of the first and of the second method of every pair."""
    first, second = np.triu_indices(methods, 1)
    return first, second


def place_of(first: int, second: int, methods: int) -> int:
    """Return the place in `pairs_of` of a pair by the numbers of both: in the upper triangle, row by row."""
    return first * methods - first * (first + 1) // 2 + second - first - 1


def variance_inflation(units: npt.ArrayLike) -> Any:
    """Return the factor of a variance over so many searches: 1 + 1 / (searches - 1)^2."""
    return 1 + 1 / (np.asarray(units) - 1.0) ** 2


def pool_or_own(
    means: Numbers, variances: Numbers, units: npt.ArrayLike, least: float = 0.0, more: int = 0
) -> MeanErrors:
    """Take the larger of a method's own variance and the pooled one, times `variance_inflation`.

    Args:
        means: Means over units, of shape (..., methods).
        variances: Variances over units, likewise.
        units: Numbers of units, at least two: one for all, or one of each method.
        least: No variance is taken to be smaller. That of rounding to the steps of a score lets no p value be 0.
        more: Units more of each method, for the errors that these variances would give then.
    """
    counts = np.broadcast_to(np.asarray(units, dtype=float), means.shape)
    degrees = counts - 1
    all_degrees = degrees.sum(axis=-1, keepdims=True)
    pooled = (degrees * variances).sum(axis=-1, keepdims=True) / all_degrees
    counts, all_degrees = counts + more, all_degrees + more * means.shape[-1]
    taken = variance_inflation(counts) * np.maximum(np.maximum(variances, pooled), least)
    return MeanErrors(means, taken / counts, np.broadcast_to(np.minimum(all_degrees, MOST_DEGREES), means.shape))


def paired_differences(values: Numbers, folds: int = 0, resolution: float = 0.0, more: int = 0) -> PairDifferences:
    """Compare methods within blocks that they share, such as splits: what a block adds to all of them cancels out.

    Two methods have the paired t test. Of more, the variance of a pair's differences is the larger of its own and the
    one pooled over all methods, `2 q` for the mean square q of what is left without the means of methods and blocks,
    times `variance_inflation`.

    Folds of a cross-validation share their training data. The variance of a mean difference over n of them is that of
    one times `1 / n + 1 / (folds - 1)`, not `1 / n` (Nadeau and Bengio, Machine Learning 52, 2003).

    Args:
        values: Scores of shape (..., methods, blocks); all methods have all blocks.
        folds: Folds of each repeat of a cross-validation, whose blocks they are; 0 for independent blocks.
        resolution: Smallest step of the score. No variance is taken to be smaller than that of rounding to it.
        more: Blocks more, for the errors that these variances would give then.
    """
    methods, blocks = values.shape[-2:]
    means = values.mean(axis=-1)
    first, second = pairs_of(methods)
    own = (values[..., first, :] - values[..., second, :]).var(axis=-1, ddof=1)
    number, degrees = blocks + more, float(blocks + more - 1)
    if methods > 2:
        rest = values - means[..., None] - values.mean(axis=-2, keepdims=True) + means.mean(axis=-1)[..., None, None]
        pooled = (rest**2).sum(axis=(-2, -1)) / ((methods - 1) * (blocks - 1))
        own = variance_inflation(number) * np.maximum(own, 2 * pooled[..., None])
        degrees = min((methods - 1) * degrees, MOST_DEGREES)
    floor = max(resolution**2 / 6, np.finfo(float).tiny)
    square = np.maximum(own, floor) * (1 / number + (1 / (folds - 1) if folds else 0.0))
    return PairDifferences(means[..., first] - means[..., second], np.sqrt(square), np.full(square.shape, degrees))


def with_assumed_search(
    means: Numbers, run_variances: Numbers, runs: Numbers, search: Numbers, degrees: float
) -> PairDifferences:
    """Compare methods with one search each, with an assumed standard deviation of search means.

    Args:
        means: Means over the runs of the one search, of shape (..., methods).
        run_variances: Variances over these runs; 0 for a method whose runs are all equal.
        runs: Numbers of runs of each method.
        search: The assumed deviation of each method; 0 for a method that was not searched.
        degrees: Degrees of freedom of the assumed deviation. Those of a pair are Satterthwaite's. The variance of a
            single run is that of rounding, which is known and takes none.
    """
    first, second = pairs_of(means.shape[-1])
    of_runs = run_variances / runs
    assumed = (search**2)[..., first] + (search**2)[..., second]
    error = assumed + of_runs[..., first] + of_runs[..., second]
    of_variances = np.where(runs > 1, of_runs**2 / np.maximum(runs - 1, 1), 0)
    spread = assumed**2 / degrees + of_variances[..., first] + of_variances[..., second]
    # Between two methods without an estimated part the error is that of rounding.
    satterthwaite = np.where(spread > 0, error**2 / np.where(spread > 0, spread, 1), MOST_DEGREES)
    return PairDifferences(means[..., first] - means[..., second], np.sqrt(error), satterthwaite)


def textbook_p(a: Numbers, b: Numbers, *, paired: bool) -> float:
    """Return the p value that a textbook's test of two methods gives alone: the paired t test, or Welch's.

    NaN where it has none: of single values, or of values without any variance.
    """
    if paired:
        differences = a - b
        return t_test_p(float(differences.mean()), float(differences.var(ddof=1)) / len(a), float(len(a) - 1))
    return welch_p(*((float(of.mean()), float(of.var(ddof=1)) if len(of) > 1 else np.nan, len(of)) for of in (a, b)))


def welch_p(a: tuple[float, float, int], b: tuple[float, float, int]) -> float:
    """Return the p value of Welch's test from mean, variance and number of the values of two methods."""
    (mean, *one), (other_mean, *other) = a, b
    squares = [variance / count for variance, count in (one, other)]
    below = sum(square**2 / (count - 1) for square, (_, count) in zip(squares, (one, other), strict=True) if count > 1)
    return t_test_p(mean - other_mean, sum(squares), sum(squares) ** 2 / below if below else np.nan)


def t_test_p(difference: float, square: float, degrees: float) -> float:
    """Return the two-sided p value of a difference with this square of its standard error."""
    return float(2 * special.stdtr(degrees, -abs(difference) / square**0.5)) if square > 0 else np.nan


def least_factor(methods: int) -> int:
    """Return the smallest factor of a p value against a best that the data choose."""
    pairs = methods * (methods - 1) // 2
    return max(methods - 1, ceil(pairs / 2)) if methods > 2 else 1


def holm(p_values: npt.ArrayLike, least: float = 1, tests: int | None = None) -> Numbers:
    """Adjust p values by Holm's method along the last axis, with no factor below `least`.

    `tests` is the number of tests of the family, if some of them have no p value yet.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, axis=-1)
    factors = np.maximum((tests or p.shape[-1]) - np.arange(p.shape[-1]), least)
    ascending = np.take_along_axis(p, order, axis=-1)
    adjusted = np.maximum.accumulate(np.minimum(factors * ascending, 1.0), axis=-1)
    result = np.empty_like(p)
    np.put_along_axis(result, order, adjusted, axis=-1)
    return result


def with_best(p_values: Numbers, methods: int) -> Numbers:
    """Adjust the p values of the method with the highest mean against the others.

    The data choose the best, which costs a factor for the range: that of the best of r methods above the lowest is
    r (r - 1) / 2. A claim that it is better than every other is one of an intersection and costs k - 1.

    Args:
        p_values: p values of the second, third, ... method by mean on the last axis; the lowest mean comes last.
        methods: Number of methods of the family, at least one more than p values.
    """
    p = np.asarray(p_values, dtype=float)
    rank = np.arange(2, p.shape[-1] + 2) + methods - p.shape[-1] - 1
    factors = np.maximum(rank * (rank - 1) / 2, least_factor(methods))
    step_down = np.maximum.accumulate((factors * p)[..., ::-1], axis=-1)[..., ::-1]
    sweep = (methods - 1) * p.max(axis=-1, keepdims=True)
    return np.asarray(np.minimum(np.minimum(step_down, sweep), 1.0))


def adjusted(p_values: Numbers, compare: str, methods: int) -> Numbers:
    """Adjust the p values of a family: those of all pairs, or those of one method (or of the best) with each other.

    Args:
        p_values: p values on the last axis: of the pairs that have a test, for `best` in the order of `with_best`.
        compare: `all`, `best`, or the name of a method.
        methods: Number of methods of the family, of which some may have no test yet.
    """
    if compare == "best":
        return with_best(p_values, methods)
    if compare == "all":
        # Holm's last factors are too small where few methods differ.
        return holm(p_values, family(compare, methods) / 2, family(compare, methods))
    return holm(p_values, tests=family(compare, methods))


def family(compare: str, methods: int) -> int:
    """Return the number of comparisons that could be claimed. The data choose the best, so any pair can have it."""
    return methods * (methods - 1) // 2 if compare in ("all", "best") else methods - 1


def adjusted_in_one_step(p_values: Numbers, compare: str, methods: int) -> Numbers:
    """Adjust each p value by the size of the family: for "within the margin" of the best, and for assumed deviations.

    An assumed deviation that is too small is too small for all pairs, so that one claim says nothing for the next.
    """
    return np.asarray(np.minimum(family(compare, methods) * p_values, 1.0))


def smallest_detectable(error: Numbers, degrees: Numbers, level: float) -> Numbers:
    """Compute the smallest true difference that would be called better with a probability of 80 % (`power_words`).

    It is (t(1 - level / 2) + t(0.8)) times the standard error, for the level of the smallest p value of the family.
    """
    return np.asarray((special.stdtrit(degrees, 1 - level / 2) + special.stdtrit(degrees, POWER)) * error)


def break_even(difference: Numbers, error: Numbers, degrees: Numbers, level: float) -> Numbers:
    """Compute how much searches of two settings may vary until a difference between them is no claim any more.

    It is the standard deviation s for which the difference is t(1 - level / 2) times sqrt(error^2 + 2 s^2); 0 if there
    is no claim without it.
    """
    room = (difference / special.stdtrit(degrees, 1 - level / 2)) ** 2 - error**2
    return np.asarray(np.sqrt(np.maximum(room, 0) / 2))


def corrected_level(compare: str, methods: int, alpha: float) -> float:
    """Return the level of "better" for the smallest p value of a family."""
    factor = least_factor(methods) if compare == "best" else family(compare, methods)
    return SHARE_OF_BETTER * alpha / factor


@dataclass(frozen=True)
class SignedRank:
    """What differences on datasets show.

    Attributes:
        median: The median difference of Hodges and Lehmann.
        low: Lower end of its 95 % interval; likewise `high`.
        p: Two-sided p value of no difference.
    """

    median: float
    low: float
    high: float
    p: float


def signed_rank(differences: Numbers) -> SignedRank:
    """Test the differences of two methods on at least six datasets.

    The p value is exact: it counts all signs that the differences could have. Zeros are left out. Differences count as
    equal if they agree to nine digits of the largest. Else the ranks would depend on the unit of the scores, because
    67.4 - 67.3 and 71.5 - 71.4 are different floats.
    """
    count, differences = len(differences), _without_rounding_errors(differences)
    means = np.sort([(a + b) / 2 for i, a in enumerate(differences) for b in differences[i:]])
    cut = _rank_of_end(count)
    p = _p_value(differences[differences != 0])
    return SignedRank(float(np.median(means)), float(means[cut]), float(means[-1 - cut]), p)


def _without_rounding_errors(differences: Numbers) -> Numbers:
    largest = float(np.max(np.abs(differences), initial=0.0))
    step = 10.0 ** (np.floor(np.log10(largest)) - 8) if largest else 1.0
    return np.round(np.asarray(differences) / step) * step


def _p_value(differences: Numbers) -> float:
    """Two-sided p value of differences that are not zero. Equal ones have the mean of their ranks."""
    from scipy import stats  # Slow to import, and only this needs it.

    doubled = np.rint(2 * stats.rankdata(np.abs(differences))).astype(int)  # Means of ranks can end in a half.
    ways, found = _sums_of_ranks(doubled), int(doubled[differences > 0].sum())
    return float(min(1.0, 2 * min(ways[: found + 1].sum(), ways[found:].sum())))


def _sums_of_ranks(ranks: Iterable[int]) -> Numbers:
    """The probability of each sum of the positive ranks, if each sign is as likely to be + as -."""
    ways = np.ones(1)
    for rank in ranks:
        longer = np.zeros(len(ways) + rank)
        longer[: len(ways)] += ways / 2
        longer[rank:] += ways / 2
        ways = longer
    return ways


@cache  # All pairs have as many datasets.
def _rank_of_end(count: int) -> int:
    """How many of the ordered means lie outside the interval at each end: the largest number with at most 2.5 %."""
    ways = _sums_of_ranks(range(1, count + 1))
    return max(0, int(np.searchsorted(np.cumsum(ways), 0.025, side="right")) - 1)
