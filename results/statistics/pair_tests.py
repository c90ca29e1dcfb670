"""Tests of all pairs of methods, on arrays: differences of means with their standard errors and degrees of freedom.

Values have the shape (..., methods, runs), with NaN for a run that a method does not have. Runs of two methods in the
same column are matched. Results have the pairs of `pairs_of` on the last axis.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from results.statistics.moderated import Numbers, Prior, cautious_prior, squeezed


def t_quantile(p: float, degrees: float) -> float:
    """Return the value that a t variable stays below with probability `p`, as `scipy.stats.t.ppf`."""
    return float(special.stdtrit(degrees, p))


def t_tail(t: float, degrees: float) -> float:
    """Return the probability that a t variable is above `t`, as `scipy.stats.t.sf`."""
    return float(special.stdtr(degrees, -t))


TestName = Literal["moderated t", "paired t", "Welch t"]

ROUNDING = 1e-12
"""Standard deviation relative to the largest value that rounding errors alone can cause."""


@dataclass(frozen=True)
class PairDifferences:
    """The difference of every pair, with what a t-test needs.

    Attributes:
        difference: Mean of the first method minus mean of the second.
        error: Standard error; 0 if the runs do not vary.
        degrees: Degrees of freedom; NaN if there are too few runs for a test.
    """

    difference: Numbers
    error: Numbers
    degrees: Numbers

    @property
    def t(self) -> Numbers:
        """The t statistics; infinite where runs that do not vary have different means, NaN without a test."""
        varied = self.error > 0
        ratio = self.difference / np.where(varied, self.error, 1.0)
        certain = np.where(self.difference == 0, 0.0, np.copysign(np.inf, self.difference))
        return np.where(np.isnan(self.degrees), np.nan, np.where(varied, ratio, certain))

    @property
    def p(self) -> Numbers:
        """Two-sided p values of no difference; NaN without a test."""
        return 2 * np.asarray(special.stdtr(self.degrees, -np.abs(self.t)))

    def p_equal(self, margin: float) -> Numbers:
        """Compute p values of equality within the margin by two one-sided tests (Schuirmann 1987)."""
        room = margin - np.abs(self.difference)
        varied = self.error > 0
        t = np.where(varied, room / np.where(varied, self.error, 1.0), np.copysign(np.inf, room))
        return np.asarray(special.stdtr(self.degrees, -np.where(np.isnan(self.degrees), np.nan, t)))


def pairs_of(methods: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the numbers of the first and of the second method of every pair."""
    first, second = np.triu_indices(methods, 1)
    return first, second


def moderated_t(values: Numbers, prior: Callable[[Numbers, Numbers], Prior] = cautious_prior) -> PairDifferences:
    """Test with moderated variances. All runs are used, and matched runs are treated as independent.

    Runs that share seeds correlate weakly, and a positive correlation only makes this test more careful. A method with
    one run is tested with the prior variance, if there is one. The degrees of freedom are Satterthwaite's, at most
    those of all runs that vary. Where nothing is borrowed, the test is Welch's.
    """
    means, variances, counts = _moments(values)
    return moderated_t_of_moments(means, variances, counts, prior)


def moderated_t_of_moments(
    means: Numbers,
    variances: Numbers,
    counts: Numbers,
    prior: Callable[[Numbers, Numbers], Prior] = cautious_prior,
) -> PairDifferences:
    """Compute `moderated_t` from the means, variances and numbers of runs of the methods, on the last axis."""
    borrowed = prior(variances, counts - 1)
    moderated, degrees = squeezed(variances, counts - 1, borrowed)
    own = np.maximum(counts - 1, 0)
    # Where nothing is borrowed, the bound is that of `welch_t`.
    varied = np.maximum(borrowed.pooled_degrees, own.max(axis=-1))
    bound = np.where(borrowed.degrees > 0, varied, own.sum(axis=-1))
    return _of_independent(means, moderated / np.maximum(counts, 1), degrees, bound)


def welch_t(values: Numbers) -> PairDifferences:
    """Test with each method's own variance (Welch 1947)."""
    means, variances, counts = _moments(values)
    degrees = counts - 1
    return _of_independent(means, variances / np.maximum(counts, 1), degrees, degrees.sum(axis=-1))


def paired_t(values: Numbers) -> PairDifferences:
    """Test the differences of matched runs. A pair with fewer than two matched runs is not tested."""
    first, second = pairs_of(values.shape[-2])
    differences = values[..., first, :] - values[..., second, :]
    means, variances, counts = _moments(differences)
    errors = np.sqrt(variances / np.maximum(counts, 1))
    largest = np.nanmax(np.abs(values), axis=(-2, -1), keepdims=True)[..., 0]
    overall = _moments(values)[0]
    means = np.where(counts > 1, means, overall[..., first] - overall[..., second])
    return _without_rounding(means, errors, np.where(counts > 1, counts - 1, np.nan), largest)


TESTS: dict[TestName, Callable[[Numbers], PairDifferences]] = {
    "moderated t": moderated_t,
    "paired t": paired_t,
    "Welch t": welch_t,
}


def _of_independent(means: Numbers, parts: Numbers, degrees: Numbers, bound: Numbers) -> PairDifferences:
    """Differences of independent means, from the squared errors of the means and their degrees of freedom."""
    first, second = pairs_of(means.shape[-1])
    total = parts[..., first] + parts[..., second]
    tested = (degrees[..., first] > 0) & (degrees[..., second] > 0)
    spread = sum(parts[..., side] ** 2 / np.where(tested, degrees[..., side], 1.0) for side in (first, second))
    varied = total > 0
    satterthwaite = np.where(varied, total**2, 1.0) / np.where(varied, spread, 1.0)
    # Without variation any number of degrees gives the same p value.
    pair_degrees = np.minimum(np.where(varied, satterthwaite, 1.0), bound[..., None])
    largest = np.max(np.abs(means), axis=-1, keepdims=True)
    difference = means[..., first] - means[..., second]
    return _without_rounding(difference, np.sqrt(total), np.where(tested, pair_degrees, np.nan), largest)


def _without_rounding(difference: Numbers, error: Numbers, degrees: Numbers, largest: Numbers) -> PairDifferences:
    """Set errors to 0 that rounding alone can cause, and the differences beside them."""
    constant = error <= ROUNDING * largest
    equal = constant & (np.abs(difference) <= ROUNDING * largest)
    return PairDifferences(np.where(equal, 0.0, difference), np.where(constant, 0.0, error), degrees)


def _moments(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Mean, sample variance (0 for a single run) and number of runs of every method."""
    present = ~np.isnan(values)
    counts = present.sum(axis=-1).astype(float)
    filled = np.where(present, values, 0.0)
    means = filled.sum(axis=-1) / np.maximum(counts, 1)
    squares = np.where(present, (filled - means[..., None]) ** 2, 0.0).sum(axis=-1)
    return means, squares / np.maximum(counts - 1, 1), counts


SHARE_OF_BETTER = 0.75
POWER = 0.8
"""Probability with which the smallest detectable difference is called better."""


def better_p(pairs: PairDifferences) -> Numbers:
    """Return the adjusted p values of "better", pairs on the last axis; NaN without a test."""
    return np.minimum(holm_adjusted(pairs.p) / SHARE_OF_BETTER, 1.0)


def equal_p(pairs: PairDifferences, margin: float) -> Numbers:
    """Return the adjusted p values of "equal within the margin", pairs on the last axis; NaN without a test."""
    return np.minimum(holm_adjusted(pairs.p_equal(margin)) / (1 - SHARE_OF_BETTER), 1.0)


def holm_adjusted(p_values: npt.ArrayLike) -> Numbers:
    """Adjust p values by Holm's method along the last axis. NaN is no test and is not counted."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, axis=-1)
    tests = np.count_nonzero(~np.isnan(p), axis=-1)[..., None]
    factors = np.maximum(tests - np.arange(p.shape[-1]), 1)
    ascending = np.take_along_axis(p, order, axis=-1)
    adjusted = np.maximum.accumulate(np.minimum(factors * ascending, 1.0), axis=-1)
    result = np.empty_like(p)
    np.put_along_axis(result, order, adjusted, axis=-1)
    return result


def smallest_detectable(error: Numbers, degrees: Numbers, alpha: float, undecided: int) -> Numbers:
    """Compute the smallest true difference that would be called better with a probability of 80 %.

    It is (t(1 - level / 2) + t(0.8)) times the standard error, where the level is corrected for the `undecided` pairs
    of the table.
    """
    level = SHARE_OF_BETTER * alpha / max(undecided, 1)
    quantiles = special.stdtrit(degrees, 1 - level / 2) + special.stdtrit(degrees, POWER)
    return np.asarray(quantiles * error)


def smallest_of_simulated(pairs: PairDifferences, alpha: float, undecided: int) -> float:
    """Compute `smallest_detectable` from simulated pairs without true differences, whose errors vary."""
    level = SHARE_OF_BETTER * alpha / undecided
    needed = special.stdtrit(pairs.degrees, 1 - level / 2) * pairs.error - pairs.difference
    return float(np.quantile(needed, POWER))
