"""One answer over several datasets: what differences on each of them say together, on arrays and for pairs of methods.

Datasets count equally. The mean of N differences has Student's t with N - 1 degrees, and never less error than the
differences have on their datasets. With equal weights this is the interval of Hartung and Knapp (2001), without an
estimate of the heterogeneity. With two datasets t is 12.7, so there is no mean, only directions.
`python -m benchmarks.board_calibration` measures how often it is wrong (docs/audit.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from results.answer.intervals import t_quantile
from results.answer.pair_tests import Numbers, holm
from results.answer.question import ALPHA
from results.answer.values import Pair

FEWEST_FOR_A_MEAN = 3
"""Datasets that a mean, a prediction and "consistent" need."""

NORMAL = 1.96
"""Quantile of the normal distribution for 95 %."""

BoardVerdict = Literal["consistent", "hint: same on both", "depends on the dataset", "cannot tell"]


@dataclass(frozen=True)
class OverDatasets:
    """Means over datasets: one, or arrays of many.

    Attributes:
        mean: Mean difference.
        half_width: Half the width of its 95 % interval.
        prediction: Half the width of the range around the mean for a difference newly measured on another such dataset,
            with the same budget; never narrower than the interval of the mean, nor than `1.96 sqrt(e^2 (1 + 1 / N))`
            for the mean square e^2 of the standard errors.
        p: Two-sided p value of no mean difference.
    """

    mean: Any
    half_width: Any
    prediction: Any
    p: Any


def over_datasets(differences: Numbers, errors: Numbers) -> OverDatasets:
    """Compute mean and prediction from the differences on at least two datasets and their standard errors.

    Datasets are on the last axis.
    """
    count, mean = differences.shape[-1], differences.mean(axis=-1)
    t, variance, of_errors = t_quantile(0.975, count - 1), differences.var(axis=-1, ddof=1), (errors**2).mean(axis=-1)
    error = np.sqrt(np.maximum(variance, of_errors) / count)
    floor = np.maximum(t * error, NORMAL * np.sqrt(of_errors * (1 + 1 / count)))
    prediction = np.maximum(t * np.sqrt(variance * (1 + 1 / count)), floor)
    return OverDatasets(mean, t * error, prediction, 2 * special.stdtr(count - 1, -np.abs(mean) / error))


def surviving(pairs: Sequence["PairOverDatasets"]) -> tuple[bool, ...]:
    """Tell which rows of a board say the same on all datasets, even after Holm's correction over all of its rows."""
    if not pairs:
        return ()
    found = zip(pairs, holm([pair.p for pair in pairs]), strict=True)
    return tuple(pair.verdict in ("consistent", "hint: same on both") and bool(p < ALPHA) for pair, p in found)


@dataclass(frozen=True)
class PairOverDatasets:
    """Method a compared with method b on several datasets.

    Attributes:
        on: The pair in the comparison of each dataset.
        mean: The mean in the unit of the values; None for two datasets, or if one has no test.
    """

    a: str
    b: str
    on: tuple[Pair, ...]
    mean: OverDatasets | None = None

    @property
    def p(self) -> float:
        """Largest p value of what "consistent" or a hint needs: that of each dataset, and of a mean."""
        alone = [1.0 if one.p is None or one.means_disagree else one.p for one in self.on]
        return max(*alone, 0.0 if self.mean is None else self.mean.p)

    @property
    def verdict(self) -> BoardVerdict:
        """What the datasets say together."""
        sides_here = {side_of(one) for one in self.on}
        if {1, -1} <= sides_here:
            return "depends on the dataset"
        if 0 in sides_here or len(self.on) < 2:
            return "cannot tell"
        if len(self.on) < FEWEST_FOR_A_MEAN:
            return "hint: same on both"
        sure = self.mean is not None and abs(self.mean.mean) > self.mean.half_width
        return "consistent" if sure else "cannot tell"


def side_of(pair: Pair) -> int:
    """Return 1 or -1 if the pair's own interval lies above or below zero and both of its means say so, else 0.

    It is 0 too where the method that is behind was held up.
    """
    within = pair.half_width is None or abs(pair.difference) <= pair.half_width
    unclear = within or pair.means_disagree or bool(pair.extent)
    return 0 if unclear else int(np.sign(pair.difference))


def error_of(pair: Pair) -> float | None:
    """Return the standard error of a difference, with the chance of the search in it; None without a test."""
    if pair.half_width is None or pair.degrees is None:
        return None
    return pair.half_width / t_quantile(0.975, pair.degrees)


def pair_over_datasets(on: Sequence[Pair]) -> PairOverDatasets:
    """Put the comparisons of one pair on several datasets together; all have the same a and b."""
    errors = [error for pair in on if (error := error_of(pair)) is not None]
    mean = None
    if len(errors) == len(on) >= FEWEST_FOR_A_MEAN:
        found = over_datasets(np.array([pair.difference for pair in on]), np.array(errors))
        mean = OverDatasets(*map(float, astuple(found)))
    return PairOverDatasets(on[0].a, on[0].b, tuple(on), mean)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Compute Spearman's rank correlation; equal values have their mean rank. NaN where all of one are equal."""
    return float(pd.DataFrame([first, second]).T.corr("spearman").to_numpy()[0, 1])


def mean_ranks(values: Sequence[float]) -> Numbers:
    """Return the rank of each value, 1 for the largest; equal values have their mean rank."""
    return np.asarray(pd.Series(values, dtype=float).rank(ascending=False))


def same_order(means: Mapping[str, Sequence[float]]) -> float:
    """Return how often two methods have the same order on two datasets, on average over every two; a tie is half."""
    pairs = np.triu_indices(len(next(iter(means.values()))), 1)
    signs = [np.sign(np.subtract.outer(own, own))[pairs] for own in map(np.asarray, means.values())]
    return float(np.mean([one * other / 2 + 0.5 for one, other in combinations(signs, 2)]))
