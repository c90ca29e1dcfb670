"""Wilcoxon's signed-rank test of differences on several datasets, and the median difference with its interval.

The datasets are the sample, so the answer is about datasets like them (Demsar, Journal of Machine Learning Research 7,
2006). The median difference is that of Hodges and Lehmann: the median of the means of every two differences. The ends
of its interval are such means too, those that the exact distribution of the ranks leaves at 95 %.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from results.answer.pair_tests import Numbers

FEWEST_DATASETS = 6
"""With fewer no difference can be shown at 5 %: of five equal signs the two-sided p value is 1 / 16."""


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
