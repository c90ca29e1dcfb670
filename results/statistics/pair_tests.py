"""Tests of pairs of methods: differences of means with their standard errors and degrees of freedom, on arrays.

The data are units: the means of complete searches, or single runs where nothing was searched. Methods are on the last
axis of means and variances, and the pairs of `pairs_of` on the last axis of results; axes before it are tables, so
that a simulation can pass many at once.

Three searches say little about a method's own variance, and the variances of methods differ. `pool_or_own` takes the
larger of the method's own variance and the pooled one, raised by a factor that a noisy method costs whose few searches
happen to agree. The factor, and the bound of the degrees, were chosen by simulation; `make calibrate` measures what
they achieve (docs/comparisons.md).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

Numbers = npt.NDArray[np.float64]

MOST_DEGREES = 40.0
"""No test has more degrees of freedom: many methods pool many searches, but not all vary equally."""


def t_quantile(p: float, degrees: float) -> float:
    """Return the value that a t variable stays below with probability `p`, as `scipy.stats.t.ppf`."""
    return float(special.stdtrit(degrees, p))


def t_tail(t: float, degrees: float) -> float:
    """Return the probability that a t variable is above `t`, as `scipy.stats.t.sf`."""
    return float(special.stdtr(degrees, -t))


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

    def shares(self, margin: float) -> Numbers:
        """Compute how sure it is that the first is better by more than the margin, within it, or worse by more.

        The last axis has the three shares, whose sum is 1: probabilities of the true difference if nothing else is
        known of it (a flat prior). They are not corrected for other pairs.
        """
        better, worse = 1 - self._tail(self.difference - margin), 1 - self._tail(-margin - self.difference)
        return np.stack([better, 1 - better - worse, worse], axis=-1)

    def half_width(self, confidence: float = 0.95) -> Numbers:
        """Half the width of each difference's own interval, which is not corrected for other pairs."""
        return np.asarray(special.stdtrit(self.degrees, (1 + confidence) / 2) * self.error)

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


def variance_inflation(units: npt.ArrayLike) -> Any:
    """Return the factor of a variance over so many searches: 1 + 0.7 / (searches - 1)^2."""
    return 1 + 0.7 / (np.asarray(units) - 1.0) ** 2


def pool_or_own(means: Numbers, variances: Numbers, units: npt.ArrayLike, resolution: float = 0.0) -> MeanErrors:
    """Take the larger of a method's own variance and the pooled one, times `variance_inflation`.

    Args:
        means: Means over units, of shape (..., methods).
        variances: Variances over units, likewise.
        units: Numbers of units, at least two: one for all, or one of each method.
        resolution: Smallest step of the score. No variance is taken to be smaller than that of rounding to it, so that
            no p value is 0.
    """
    counts = np.broadcast_to(np.asarray(units, dtype=float), means.shape)
    degrees = counts - 1
    all_degrees = degrees.sum(axis=-1, keepdims=True)
    pooled = (degrees * variances).sum(axis=-1, keepdims=True) / all_degrees
    taken = variance_inflation(counts) * np.maximum(np.maximum(variances, pooled), resolution**2 / 12)
    return MeanErrors(means, taken / counts, np.broadcast_to(np.minimum(all_degrees, MOST_DEGREES), means.shape))


def with_assumed_search(
    means: Numbers, run_variances: Numbers, runs: Numbers, search: Numbers, degrees: float
) -> PairDifferences:
    """Compare methods with one search each, with an assumed standard deviation of search means.

    Args:
        means: Means over the runs of the one search, of shape (..., methods).
        run_variances: Variances over these runs; 0 for a method whose runs are all equal.
        runs: Numbers of runs of each method.
        search: The assumed deviation of each method; 0 for a method that was not searched.
        degrees: Degrees of freedom of the assumed deviation. Those of a pair are Satterthwaite's.
    """
    first, second = pairs_of(means.shape[-1])
    of_runs = run_variances / runs
    assumed = (search**2)[..., first] + (search**2)[..., second]
    error = assumed + of_runs[..., first] + of_runs[..., second]
    spread = assumed**2 / degrees + sum(
        of_runs[..., side] ** 2 / np.maximum(runs[..., side] - 1, 1) for side in (first, second)
    )
    satterthwaite = error**2 / np.where(spread > 0, spread, 1)
    return PairDifferences(means[..., first] - means[..., second], np.sqrt(error), satterthwaite)
