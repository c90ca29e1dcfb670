"""Claims about all pairs of a table, so that a table makes a wrong claim with a probability of at most alpha.

For every pair there are two claims: "better" (the means differ) and "equal" (they differ by less than a margin). The
level alpha covers all claims of a table together: `SHARE_OF_BETTER` of it is spent on the first kind and the rest on
the second, each kind with Holm's correction for all pairs (Scandinavian Journal of Statistics 6(2), 1979).

Adjusted p values include both the correction and the share: a claim is made if its adjusted p is below alpha.
"""

import numpy as np
import numpy.typing as npt
from scipy import special

from results.statistics.pair_tests import PairDifferences

Array = npt.NDArray[np.float64]

SHARE_OF_BETTER = 0.75
POWER = 0.8
"""Probability with which the smallest detectable difference is called better."""


def better_p(pairs: PairDifferences) -> Array:
    """Return the adjusted p values of "better", pairs on the last axis; NaN without a test."""
    return np.minimum(holm_adjusted(pairs.p) / SHARE_OF_BETTER, 1.0)


def equal_p(pairs: PairDifferences, margin: float) -> Array:
    """Return the adjusted p values of "equal within the margin", pairs on the last axis; NaN without a test."""
    return np.minimum(holm_adjusted(pairs.p_equal(margin)) / (1 - SHARE_OF_BETTER), 1.0)


def holm_adjusted(p_values: npt.ArrayLike) -> Array:
    """Adjust p values by Holm's method along the last axis. NaN is no test and is not counted.

    Args:
        p_values: The p values of one family of tests.

    Returns:
        The adjusted p values, in the same order.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, axis=-1)
    tests = np.count_nonzero(~np.isnan(p), axis=-1)[..., None]
    factors = np.maximum(tests - np.arange(p.shape[-1]), 1)
    ascending = np.take_along_axis(p, order, axis=-1)
    adjusted = np.maximum.accumulate(np.minimum(factors * ascending, 1.0), axis=-1)
    result = np.empty_like(p)
    np.put_along_axis(result, order, adjusted, axis=-1)
    return result


def smallest_detectable(error: Array, degrees: Array, alpha: float, undecided: int) -> Array:
    """Compute the smallest true difference that would be called better with a probability of 80 %.

    Args:
        error: Standard errors of the differences.
        degrees: Degrees of freedom.
        alpha: Level of the whole table.
        undecided: Number of pairs that Holm's method still corrects for.

    Returns:
        (t(1 - level / 2) + t(0.8)) times the standard error, in the unit of the error.
    """
    level = SHARE_OF_BETTER * alpha / max(undecided, 1)
    quantiles = special.stdtrit(degrees, 1 - level / 2) + special.stdtrit(degrees, POWER)
    return np.asarray(quantiles * error)


def smallest_of_simulated(pairs: PairDifferences, alpha: float, undecided: int) -> float:
    """Compute `smallest_detectable` from simulated pairs without true differences, with the spread of their errors.

    Args:
        pairs: Simulated pairs.
        alpha: Level of the whole table.
        undecided: Number of pairs that Holm's method corrects for.

    Returns:
        The true difference with which 80 % of these pairs would be called better.
    """
    level = SHARE_OF_BETTER * alpha / undecided
    needed = special.stdtrit(pairs.degrees, 1 - level / 2) * pairs.error - pairs.difference
    return float(np.quantile(needed, POWER))
