"""Whether a difference between two methods is real: t-tests over runs, Holm's correction, ties with the best.

MLRC reports intervals and no test; its runs share no seeds. Ours do, so that differences of matched runs are tested
(specification, section 11, decision 26). Everything here takes plain values by run (`run_values.run_values`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import stats

from results.statistics.effects import Effect, negligible, paired_effect, unpaired_effect
from results.statistics.intervals import Interval, student_t_interval

PublishedVerdict = Literal[
    "inside",
    "above",
    "below",
    "not run",
    "no interval",
    "not printed",
    "quoted",
    "source unclear",
    "method not in suite",
]
"""Where our interval lies by a published value, or why the two are not compared.

A value that its paper quoted from another paper has no verdict: our runs under the first paper's conditions cannot
reproduce it.
"""
"""Where our interval lies by a published value."""

RunValues = Mapping[Any, float]
"""A method's values by run; runs of equal keys are matched."""


def verdict(ours: Interval | None, published: float | None, rounding: float = 0.0) -> PublishedVerdict:
    """Where our interval lies by a published value.

    Args:
        ours: Our interval; None if nothing was run.
        published: The value, in the unit of our interval; None if the paper prints a dash.
        rounding: Half a unit of the last published digit. The value stands for all that round to it.

    Returns:
        `inside`: the value is in our interval. `above`, `below`: our interval lies above or below the value.
        `no interval`: a single run has none. `not run`, `not printed`: there is nothing to compare.
    """
    if ours is None:
        return "not run"
    if published is None:
        return "not printed"
    if ours.low is None or ours.high is None:
        return "no interval"
    if ours.low > published + rounding:
        return "above"
    return "below" if ours.high < published - rounding else "inside"


@dataclass(frozen=True)
class Comparison:
    """Method a against method b.

    test: `paired t` over matched runs, `Welch t` over all runs where fewer than two are matched, `none` where there
    are too few runs. difference: mean of a minus mean of b; half_width: of its confidence interval, None without a
    test. n_a, n_b: runs that count; left_out: runs without a partner, which a paired test cannot use. t, degrees, p:
    two-sided test of no difference. p_holm: adjusted for the family that the comparison was made in; p where it was
    made alone. effect: None where runs do not vary.
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
        """Whether the difference is, after Holm's correction; never without a test."""
        return self.p_holm is not None and self.p_holm < alpha


def compare(a: RunValues, b: RunValues, names: tuple[str, str] = ("a", "b"), confidence: float = 0.95) -> Comparison:
    """Tests whether two methods' means differ; matched runs are those of equal keys.

    Runs that do not vary at all are no evidence against equality if they are equal (p = 1) and leave no doubt if they
    are not (p = 0). Raises ValueError if a method has no run.
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
    """Every method against every later one, p values adjusted for the whole family by Holm's method."""
    pairs = combinations(methods, 2)
    return _adjusted([compare(methods[a], methods[b], (a, b), confidence) for a, b in pairs])


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given (Scandinavian Journal of Statistics 6(2), 1979)."""
    count = len(p_values)
    order = sorted(range(count), key=lambda index: p_values[index])
    adjusted, floor = [0.0] * count, 0.0
    for rank, index in enumerate(order):
        floor = max(floor, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = floor
    return adjusted


@dataclass(frozen=True)
class Best:
    """The method of the highest mean. tied: not significantly worse than it; untested: too few runs to say."""

    name: str
    tied: frozenset[str]
    untested: frozenset[str]


def compare_with_best(methods: Mapping[str, RunValues], confidence: float = 0.95) -> tuple[str, list[Comparison]]:
    """The method of the highest mean (the first of equal ones), and its comparisons with the others, in their order.

    These are the family of Holm's correction. Raises ValueError without a method.
    """
    if not methods:
        raise ValueError("the best of no methods is none")
    name = max(methods, key=lambda method: float(np.mean(list(methods[method].values()))))
    others = [other for other in methods if other != name]
    return name, _adjusted([compare(methods[name], methods[other], (name, other), confidence) for other in others])


def best_of(methods: Mapping[str, RunValues], alpha: float = 0.05) -> Best:
    """The method of the highest mean (the first of equal ones) and what could be told apart from it.

    The family of Holm's correction is the comparisons with the best. That the best was chosen by the same runs makes
    it look a little better than it is: ties are the safer reading. Raises ValueError without a method.
    """
    name, against = compare_with_best(methods)
    tied = {one.b for one in against if one.p_holm is not None and not one.significant(alpha)}
    return Best(name, frozenset(tied), frozenset(one.b for one in against if one.p_holm is None))


def _paired(
    names: tuple[str, str], a: Sequence[float], b: Sequence[float], left_out: int, confidence: float
) -> Comparison:
    differences = [x - y for x, y in zip(a, b, strict=True)]
    n = len(differences)
    interval = student_t_interval(differences, confidence)
    error = float(np.std(differences, ddof=1)) / math.sqrt(n)
    # Differences inherit the rounding of the values that they are of.
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
    # Welch and Satterthwaite; without variance any number of degrees says the same.
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
    """t; 0 or infinite where the values vary by no more than rounding."""
    if error > rounding:
        return difference / error
    return 0.0 if abs(difference) <= rounding else math.copysign(math.inf, difference)


def _two_sided(t: float, degrees: float) -> float:
    return float(2 * stats.t.sf(abs(t), degrees))


def _adjusted(family: list[Comparison]) -> list[Comparison]:
    tested = [one for one in family if one.p is not None]
    adjusted = iter(holm([one.p for one in tested if one.p is not None]))
    return [one if one.p is None else replace(one, p_holm=next(adjusted)) for one in family]
