"""One answer over several datasets: what differences on each of them say together, on arrays and for pairs of methods.

Datasets count equally. The mean of N differences has Student's t with N - 1 degrees, and never less error than the
differences have on their datasets. With equal weights this is the interval of Hartung and Knapp (2001), without an
estimate of the heterogeneity. With two datasets t is 12.7, so there is no mean, only directions.
`python -m tests.benchmarks.board_calibration` measures how often it is wrong (docs/board.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from results.statistics.comparison_result import ComparedPair, ComparisonResult
from results.statistics.pair_tests import Numbers, t_quantile

FEWEST_FOR_A_MEAN = 3
"""Datasets that a mean, a prediction and "consistent" need."""

NOISE = 2.0
"""A typical difference of a dataset is its unit only if it is larger than this many deviations of a search."""

BoardVerdict = Literal["consistent", "same on both", "depends on the dataset", "cannot tell"]


@dataclass(frozen=True)
class OverDatasets:
    """Means over datasets, which are on the last axis of what they are made from.

    Attributes:
        mean: Mean difference.
        half_width: Half the width of its 95 % interval.
        prediction: Half the width of the range around the mean that holds a difference newly measured on another such
            dataset, with the same budget, in 95 % of cases.
    """

    mean: Numbers
    half_width: Numbers
    prediction: Numbers


def over_datasets(differences: Numbers, errors: Numbers) -> OverDatasets:
    """Compute mean and prediction from the differences on at least two datasets and their standard errors."""
    count = differences.shape[-1]
    t, variance = t_quantile(0.975, count - 1), differences.var(axis=-1, ddof=1)
    of_mean = np.maximum(variance, (errors**2).mean(axis=-1)) / count
    return OverDatasets(differences.mean(axis=-1), t * np.sqrt(of_mean), t * np.sqrt(variance * (1 + 1 / count)))


def sides(differences: Numbers, errors: Numbers, degrees: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Return on which side of zero the 95 % interval of each difference lies: 1, -1, or 0 if it holds zero."""
    outside = np.abs(differences) > special.stdtrit(degrees, 0.975) * errors
    return np.where(outside, np.sign(differences), 0).astype(np.int8)


def consistent(differences: Numbers, errors: Numbers, degrees: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Tell whether all intervals lie on one side of zero, with that of the mean; never for fewer than three."""
    if differences.shape[-1] < FEWEST_FOR_A_MEAN:
        return np.zeros(differences.shape[:-1], dtype=bool)
    total, found = sides(differences, errors, degrees).sum(axis=-1), over_datasets(differences, errors)
    one_side = np.abs(total) == differences.shape[-1]
    return np.asarray(one_side & (np.abs(found.mean) > found.half_width))


@dataclass(frozen=True)
class DatasetDifference:
    """A difference on one dataset, in the unit of the values.

    Attributes:
        error: Standard error with the chance of the search in it; None without a test, and so are the degrees.
        degrees: Degrees of freedom.
        untested: Why there is no test.
    """

    difference: float
    error: float | None = None
    degrees: float | None = None
    untested: str = ""

    @property
    def half_width(self) -> float | None:
        """Half the width of the 95 % interval."""
        if self.error is None or self.degrees is None:
            return None
        return t_quantile(0.975, self.degrees) * self.error

    @property
    def side(self) -> int:
        """1 or -1 if the interval lies above or below zero, else 0."""
        half_width = self.half_width
        return 0 if half_width is None or abs(self.difference) <= half_width else int(np.sign(self.difference))


@dataclass(frozen=True)
class MeanDifference:
    """A mean over datasets, with half the widths of its interval and of the prediction (`OverDatasets`)."""

    mean: float
    half_width: float
    prediction: float


@dataclass(frozen=True)
class PairOverDatasets:
    """Method a compared with method b on several datasets.

    Attributes:
        on: The difference on each dataset.
        mean: The mean in the unit of the values; None for two datasets, or if one has no test.
        relative: The mean in units of the datasets; also None if a dataset's typical difference is noise.
    """

    a: str
    b: str
    on: tuple[DatasetDifference, ...]
    mean: MeanDifference | None = None
    relative: MeanDifference | None = None

    @property
    def verdict(self) -> BoardVerdict:
        """What the datasets say together."""
        sides_here = {one.side for one in self.on}
        if {1, -1} <= sides_here:
            return "depends on the dataset"
        if 0 in sides_here or len(self.on) < 2:
            return "cannot tell"
        if len(self.on) < FEWEST_FOR_A_MEAN:
            return "same on both"
        sure = self.mean is not None and abs(self.mean.mean) > self.mean.half_width
        return "consistent" if sure else "cannot tell"

    @property
    def ahead(self) -> tuple[int, int]:
        """On how many datasets a is ahead, and on how many b."""
        return sum(one.difference > 0 for one in self.on), sum(one.difference < 0 for one in self.on)


def pair_over_datasets(
    a: str, b: str, on: Sequence[DatasetDifference], units: Sequence[float | None] = ()
) -> PairOverDatasets:
    """Put the differences of one pair together.

    Args:
        a: The method that is ahead where a difference is above zero.
        b: The other method.
        on: The difference on each dataset.
        units: Typical difference of each dataset; None where it is noise (`typical_difference`).
    """
    errors = [one.error for one in on if one.error is not None]
    if len(on) < FEWEST_FOR_A_MEAN or len(errors) < len(on):
        return PairOverDatasets(a, b, tuple(on))
    differences, known = np.array([one.difference for one in on]), [unit for unit in units if unit is not None]
    scaled = np.array(known) if len(known) == len(on) else None
    mean = _mean(differences, np.array(errors))
    relative = None if scaled is None else _mean(differences / scaled, np.array(errors) / scaled)
    return PairOverDatasets(a, b, tuple(on), mean, relative)


def _mean(differences: Numbers, errors: Numbers) -> MeanDifference:
    found = over_datasets(differences, errors)
    return MeanDifference(float(found.mean), float(found.half_width), float(found.prediction))


def difference_on(comparison: ComparisonResult, a: str, b: str) -> DatasetDifference:
    """Return the difference of two methods of a comparison of all pairs, with the error of its test."""
    pair: ComparedPair | None = comparison.pair(a, b)
    if pair is None:
        raise ValueError(f"{a} and {b} were not compared")
    if pair.half_width is None or pair.degrees is None:
        return DatasetDifference(pair.difference, untested=pair.untested or "not tested")
    return DatasetDifference(pair.difference, pair.half_width / t_quantile(0.975, pair.degrees), pair.degrees)


def typical_difference(means: Sequence[float], search: float | None) -> float | None:
    """Return the median distance of two methods, the unit of a dataset; None if it is unknown or mostly noise.

    Args:
        means: Means of the methods.
        search: Standard deviation of a method's mean from search to search, or from run to run; None if not known.
    """
    median = float(np.median([abs(one - other) for one, other in combinations(means, 2)]))
    return median if search is not None and median > NOISE * search else None


@dataclass(frozen=True)
class Agreement:
    """How far two datasets agree on the order of the methods.

    Attributes:
        first: Name of a dataset.
        second: Name of another.
        correlation: Spearman's rank correlation of the means; NaN if all methods are equal on one of them.
        same_order: Share of the pairs of methods with the same order on both. A tie is half of one.
    """

    first: str
    second: str
    correlation: float
    same_order: float


def agreements(means: Mapping[str, Sequence[float]]) -> tuple[Agreement, ...]:
    """Compare the orders of the methods on every two datasets; the means are in the same order of methods."""
    return tuple(
        Agreement(one, other, rank_correlation(means[one], means[other]), _same_order(means[one], means[other]))
        for one, other in combinations(means, 2)
    )


def agreement_by_chance(means: Mapping[str, Sequence[float]], draws: int = 1_000) -> float:
    """Return how often random orders agree at least as much as these, on average over every two datasets."""
    generator, given = np.random.default_rng(0), [np.asarray(own, dtype=float) for own in means.values()]

    def agreed(orders: Sequence[Numbers]) -> float:
        return float(np.mean([_same_order(one, other) for one, other in combinations(orders, 2)]))

    found = agreed(given)
    # Rounding must not make equal shares unequal.
    return float(np.mean([agreed([generator.permutation(own) for own in given]) > found - 1e-9 for _ in range(draws)]))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Compute Spearman's rank correlation; equal values have their mean rank."""
    ranks = [mean_ranks(first), mean_ranks(second)]
    if any(np.ptp(of_one) == 0 for of_one in ranks):
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def mean_ranks(values: Sequence[float]) -> Numbers:
    """Return the rank of each value, 1 for the largest; equal values have their mean rank."""
    given = np.asarray(values, dtype=float)
    above, equal = given[:, None] < given, given[:, None] == given
    return np.asarray(above.sum(axis=1) + (equal.sum(axis=1) + 1) / 2)


def _same_order(first: Sequence[float] | Numbers, second: Sequence[float] | Numbers) -> float:
    signs = [np.sign(np.subtract.outer(given, given)) for given in (np.asarray(first), np.asarray(second))]
    pairs = np.triu_indices(len(first), 1)
    return float(np.mean((signs[0] * signs[1])[pairs] / 2 + 0.5))
