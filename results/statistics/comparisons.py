"""Tests of differences between methods: t-tests over runs, Holm's correction, ties with the best method.

MLRC reports intervals but no test, since its runs share no seeds. The runs of this suite share seeds, so differences of
matched runs are tested (specification, section 11, decision 26). Functions take the values of `run_values.run_values`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import stats

from results.statistics.effects import Effect, negligible, paired_effect, unpaired_effect
from results.statistics.intervals import student_t_interval

RunValues = Mapping[Any, float]
"""A method's values by run. Runs of two methods with equal keys are matched."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of method a with method b.

    Attributes:
        a: Name of method a.
        b: Name of method b.
        test: `paired t` over matched runs; `Welch t` over all runs if fewer than two are matched; `none` if there are
            too few runs for a test.
        difference: Mean of a minus mean of b, in the unit of the values.
        half_width: Half the width of the difference's confidence interval; None without a test.
        n_a: Number of runs of a that were used.
        n_b: Number of runs of b that were used.
        left_out: Number of runs without a matched run, which a paired test cannot use.
        t: Test statistic; None without a test, as are the next three.
        degrees: Degrees of freedom.
        p: Two-sided p value of the hypothesis that there is no difference.
        p_holm: p adjusted for all comparisons of the same family; p for a single comparison.
        effect: Effect size; None if the runs do not vary.
    """

    a: str
    b: str
    test: Literal["paired t", "Welch t", "none"]
    difference: float
    half_width: float | None
    n_a: int
    n_b: int
    left_out: int = 0
    t: float | None = None
    degrees: float | None = None
    p: float | None = None
    p_holm: float | None = None
    effect: Effect | None = None

    @property
    def low(self) -> float | None:
        """Lower end of the difference's interval, or None."""
        return None if self.half_width is None else self.difference - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end of the difference's interval, or None."""
        return None if self.half_width is None else self.difference + self.half_width

    def significant(self, alpha: float = 0.05) -> bool:
        """Tell whether the adjusted p value is below `alpha`; False without a test."""
        return self.p_holm is not None and self.p_holm < alpha


def compare(a: RunValues, b: RunValues, names: tuple[str, str] = ("a", "b"), confidence: float = 0.95) -> Comparison:
    """Test whether the means of two methods differ.

    Without any variation between runs, p is 1 for equal means and 0 for different means.

    Args:
        a: Values of method a by run. Runs with equal keys in `a` and `b` are matched.
        b: Values of method b by run.
        names: Names of the methods.
        confidence: Confidence level of the interval, a fraction of 1.

    Returns:
        The comparison: a paired t-test if at least two runs are matched, else Welch's t-test.

    Raises:
        ValueError: A method has no run.
    """
    for name, values in zip(names, (a, b), strict=True):
        if not values:
            raise ValueError(f"{name} has no run to compare")
    matched = [key for key in a if key in b]
    if len(matched) >= 2:
        left_out = len(a) + len(b) - 2 * len(matched)
        return _paired(names, [a[key] for key in matched], [b[key] for key in matched], left_out, confidence)
    return _unpaired(names, list(a.values()), list(b.values()), confidence)


def compare_all(methods: Mapping[str, RunValues], confidence: float = 0.95) -> list[Comparison]:
    """Compare every pair of methods, with p values adjusted for all pairs by Holm's method.

    Args:
        methods: Values by run, by method.
        confidence: Confidence level of the intervals, a fraction of 1.

    Returns:
        The comparisons of each method with every later one.

    Raises:
        ValueError: A method has no run.
    """
    pairs = combinations(methods, 2)
    return _adjusted([compare(methods[a], methods[b], (a, b), confidence) for a, b in pairs])


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for multiple comparisons by Holm's method (Scandinavian Journal of Statistics 6(2), 1979).

    Args:
        p_values: The p values of one family of comparisons.

    Returns:
        The adjusted p values, in the same order.
    """
    count = len(p_values)
    order = sorted(range(count), key=lambda index: p_values[index])
    adjusted, floor = [0.0] * count, 0.0
    for rank, index in enumerate(order):
        floor = max(floor, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = floor
    return adjusted


@dataclass(frozen=True)
class Best:
    """The method with the highest mean, and the methods that may be as good.

    Attributes:
        name: The method with the highest mean.
        tied: Methods that are not significantly worse.
        untested: Methods that cannot be tested against it, because there are too few runs.
    """

    name: str
    tied: frozenset[str]
    untested: frozenset[str]


def compare_with_best(methods: Mapping[str, RunValues], confidence: float = 0.95) -> tuple[str, list[Comparison]]:
    """Compare the method with the highest mean with every other method.

    Args:
        methods: Values by run, by method.
        confidence: Confidence level of the intervals, a fraction of 1.

    Returns:
        The method with the highest mean (the first of equal ones), and its comparisons in the order of `methods`. They
        are one family for Holm's correction.

    Raises:
        ValueError: There is no method, or a method has no run.
    """
    if not methods:
        raise ValueError("there are no methods to compare")
    name = max(methods, key=lambda method: float(np.mean(list(methods[method].values()))))
    others = [other for other in methods if other != name]
    return name, _adjusted([compare(methods[name], methods[other], (name, other), confidence) for other in others])


def best_of(methods: Mapping[str, RunValues], alpha: float = 0.05) -> Best:
    """Find the method with the highest mean (the first of equal ones) and the methods that are tied with it.

    Holm's correction is over the comparisons with the best method. The best method was chosen by the same runs, so it
    looks slightly better than it is.

    Args:
        methods: Values by run, by method.
        alpha: Significance level.

    Returns:
        The best method, the methods tied with it, and the methods that have too few runs for a test.

    Raises:
        ValueError: There is no method, or a method has no run.
    """
    name, comparisons = compare_with_best(methods)
    tied = {comparison.b for comparison in comparisons if comparison.p_holm is not None}
    tied -= {comparison.b for comparison in comparisons if comparison.significant(alpha)}
    untested = {comparison.b for comparison in comparisons if comparison.p_holm is None}
    return Best(name, frozenset(tied), frozenset(untested))


def _paired(
    names: tuple[str, str], a: Sequence[float], b: Sequence[float], left_out: int, confidence: float
) -> Comparison:
    differences = [x - y for x, y in zip(a, b, strict=True)]
    n = len(differences)
    interval = student_t_interval(differences, confidence)
    error = float(np.std(differences, ddof=1)) / math.sqrt(n)
    # The rounding errors of the differences have the size of the values' rounding errors.
    t = _ratio(interval.mean, error, negligible([*a, *b]))
    return Comparison(
        *names,
        test="paired t",
        difference=interval.mean,
        half_width=interval.half_width,
        n_a=n,
        n_b=n,
        left_out=left_out,
        t=t,
        degrees=n - 1,
        p=(p := _two_sided(t, n - 1)),
        p_holm=p,
        effect=paired_effect(differences, confidence) if math.isfinite(t) else None,
    )


def _unpaired(names: tuple[str, str], a: Sequence[float], b: Sequence[float], confidence: float) -> Comparison:
    difference = float(np.mean(a) - np.mean(b))
    if min(len(a), len(b)) < 2:
        return Comparison(*names, test="none", difference=difference, half_width=None, n_a=len(a), n_b=len(b))
    parts = [float(np.var(values, ddof=1)) / len(values) for values in (a, b)]
    error = math.sqrt(sum(parts))
    varies = error > negligible([*a, *b])
    # Welch-Satterthwaite degrees of freedom. Without variance their number does not matter.
    spread = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (a, b), strict=True))
    degrees = sum(parts) ** 2 / spread if varies else float(len(a) + len(b) - 2)
    t = _ratio(difference, error, negligible([*a, *b]))
    return Comparison(
        *names,
        test="Welch t",
        difference=difference,
        half_width=float(stats.t.ppf((1 + confidence) / 2, degrees)) * error,
        n_a=len(a),
        n_b=len(b),
        t=t,
        degrees=degrees,
        p=(p := _two_sided(t, degrees)),
        p_holm=p,
        effect=unpaired_effect(a, b, confidence) if varies else None,
    )


def _ratio(difference: float, error: float, rounding: float) -> float:
    """The t statistic; 0 or infinite if the values vary by no more than rounding."""
    if error > rounding:
        return difference / error
    return 0.0 if abs(difference) <= rounding else math.copysign(math.inf, difference)


def _two_sided(t: float, degrees: float) -> float:
    return float(2 * stats.t.sf(abs(t), degrees))


def _adjusted(family: list[Comparison]) -> list[Comparison]:
    adjusted = iter(holm([comparison.p for comparison in family if comparison.p is not None]))
    return [comparison if comparison.p is None else replace(comparison, p_holm=next(adjusted)) for comparison in family]
