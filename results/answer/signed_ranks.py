"""Wilcoxon's signed-rank test of differences on several datasets, and the median difference with its interval.

The datasets are the sample, so the answer is about datasets like them (Demsar, Journal of Machine Learning Research 7,
2006). The median difference is that of Hodges and Lehmann: the median of the means of every two differences. The ends
of its interval are such means too, those that the exact distribution of the ranks leaves at 95 %.
"""

from dataclasses import dataclass

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

    The p value is exact where no differences are zero or equal up to sign, for up to 50 datasets. Else it is that of
    `scipy.stats.wilcoxon`, which leaves zeros out.
    """
    count = len(differences)
    means = np.sort([(a + b) / 2 for i, a in enumerate(differences) for b in differences[i:]])
    cut = _rank_of_end(count)
    p = _p_value(differences) if np.any(differences) else 1.0
    return SignedRank(float(np.median(means)), float(means[cut]), float(means[-1 - cut]), p)


def _p_value(differences: Numbers) -> float:
    from scipy import stats  # Slow to import, and only this needs it.

    return float(stats.wilcoxon(differences).pvalue)


def _rank_of_end(count: int) -> int:
    """How many of the ordered means lie outside the interval at each end: the largest number with at most 2.5 %."""
    ways = np.ones(1)
    for rank in range(1, count + 1):
        longer = np.zeros(len(ways) + rank)
        longer[: len(ways)] += ways / 2
        longer[rank:] += ways / 2
        ways = longer
    return max(0, int(np.searchsorted(np.cumsum(ways), 0.025, side="right")) - 1)
