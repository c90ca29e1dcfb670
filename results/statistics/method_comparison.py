"""The one comparison of an experiment's methods on one score, with a verdict for every pair that was asked for.

Marks, sentences, tables, exports and claims read the result of `compare_methods`, so that they cannot contradict each
other. People ask whether a method is better, and its result hangs on its search more than on its runs. So the data are
the means of complete searches. Where each method was searched once, the deviation of a search is assumed from a kept
record. Where nothing was searched, the runs are the data, and the verdicts are about the given settings.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import special

from results.statistics.multiplicity import SHARE_OF_BETTER, adjusted, adjusted_in_one_step, family, least_factor
from results.statistics.pair_tests import (
    MOST_DEGREES,
    MeanErrors,
    Numbers,
    PairDifferences,
    pool_or_own,
    with_assumed_search,
)
from results.statistics.search_deviation import WIDENING, SearchDeviation

ALPHA = 0.05
MARGIN = 0.005
"""Half a percentage point: methods that differ by less count as equal."""

POWER = 0.8
"""Probability with which the smallest detectable difference is called better."""

Unit = Literal["search", "single search", "run"]
"""What a method's values are: means of repeated searches, the runs of its only search, or runs of a given setting."""

Direction = Literal["a better", "b better", "cannot tell"]
Size = Literal["beyond", "within", "cannot tell"]
Missing = Literal["searches missing", "runs missing"]
Untested = Missing | Literal["single runs", "search not known"]


@dataclass(frozen=True)
class MethodValues:
    """A method's scores, fractions of 1 if the margin is at its default.

    Attributes:
        units: Independent values: the means of complete searches where searches are repeated, else runs.
        runs: Number of runs behind them.
        searched: Whether its hyperparameters were searched.
        constant: Whether one value stands for all, because every other would be equal.
        missing: What it lacks; None if it is complete.
    """

    units: tuple[float, ...]
    runs: int
    searched: bool = True
    constant: bool = False
    missing: Missing | None = None

    @property
    def mean(self) -> float:
        """Mean of the units; NaN without any."""
        return float(np.mean(self.units)) if self.units else math.nan

    @property
    def failed(self) -> tuple[float, ...]:
        """Units of a searched method that reached less than half of its best one: searches that failed."""
        return tuple(unit for unit in self.units if unit < max(self.units) / 2) if self.searched else ()


@dataclass(frozen=True)
class ComparedPair:
    """Method a compared with method b. Differences are in the unit of the values.

    Attributes:
        difference: Mean of a minus mean of b.
        untested: Why there is no verdict; then all numbers up to `share_worse` are None.
        half_width: Half the width of the difference's own 95 % interval, which is not corrected for other pairs.
        p: Two-sided p value of the hypothesis that there is no difference, for this pair alone.
        p_better: p value of "better", adjusted for all claims of the family.
        p_beyond: p value of "beyond the margin", adjusted likewise.
        p_equal: p value of "within the margin", adjusted likewise.
        smallest: Smallest true difference that would be called better with a probability of 80 %.
        share_better: How sure it is that a is better by more than the margin (`PairDifferences.shares`), not corrected.
        share_within: The same for a difference within the margin.
        share_worse: The same for a being worse by more.
        units_a: Number of a's searches, or of its runs if nothing was searched; likewise `units_b`.
        direction: Which method is better, as far as the data can tell.
        size: Whether the difference is beyond the margin or within it, as far as they can tell.
    """

    a: str
    b: str
    difference: float
    units_a: int
    units_b: int
    runs_a: int
    runs_b: int
    untested: Untested | None = None
    half_width: float | None = None
    degrees: float | None = None
    p: float | None = None
    p_better: float | None = None
    p_beyond: float | None = None
    p_equal: float | None = None
    smallest: float | None = None
    share_better: float | None = None
    share_within: float | None = None
    share_worse: float | None = None
    direction: Direction = "cannot tell"
    size: Size = "cannot tell"

    @property
    def low(self) -> float | None:
        """Lower end of the difference's interval, or None."""
        return None if self.half_width is None else self.difference - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end of the difference's interval, or None."""
        return None if self.half_width is None else self.difference + self.half_width

    @property
    def better(self) -> str | None:
        """Name of the method that is claimed to be better, or None."""
        return {"a better": self.a, "b better": self.b}.get(self.direction)

    @property
    def worse(self) -> str | None:
        """Name of the method that is claimed to be worse, or None."""
        return {"a better": self.b, "b better": self.a}.get(self.direction)

    def turned(self) -> "ComparedPair":
        """Return the same pair as b compared with a."""
        turned: dict[str, Direction] = {"a better": "b better", "b better": "a better"}
        return replace(
            self,
            a=self.b,
            b=self.a,
            difference=-self.difference,
            units_a=self.units_b,
            units_b=self.units_a,
            runs_a=self.runs_b,
            runs_b=self.runs_a,
            share_better=self.share_worse,
            share_worse=self.share_better,
            direction=turned.get(self.direction, "cannot tell"),
        )

    def claimed_size(self, claimed: float) -> Literal["compatible", "excluded"] | None:
        """Tell whether the interval of the difference excludes a claimed one; None without an interval."""
        if self.half_width is None:
            return None
        return "excluded" if abs(self.difference - claimed) > self.half_width else "compatible"


@dataclass(frozen=True)
class ComparisonResult:
    """The pairs of methods that were asked for, with their verdicts.

    Attributes:
        values: The values of every method.
        pairs: For `all` each method with every later one, else the reference with each other one.
        compare: `all`, `best`, or the name of the method that each other is compared with.
        unit: What was compared.
        alpha: Bound of the probability that the family has any wrong claim.
        margin: Methods that differ by less count as equal.
        assumed: The deviation of a search that was assumed, if each method was searched once.
        settings: The comparison of the settings that the only searches found, by their runs. It says nothing about
            methods.
    """

    values: Mapping[str, MethodValues]
    pairs: tuple[ComparedPair, ...]
    compare: str
    unit: Unit
    alpha: float
    margin: float
    assumed: SearchDeviation | None = None
    settings: "ComparisonResult | None" = None

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods with values, in the experiment's order."""
        return tuple(name for name, values in self.values.items() if values.units)

    @cached_property
    def means(self) -> dict[str, float]:
        """Means of the methods with values."""
        return {name: self.values[name].mean for name in self.methods}

    @cached_property
    def _by_names(self) -> dict[frozenset[str], ComparedPair]:
        return {frozenset((pair.a, pair.b)): pair for pair in self.pairs}

    def pair(self, one: str, other: str) -> ComparedPair | None:
        """Return a pair with `one` as its a; None if it was not asked for."""
        found = self._by_names.get(frozenset((one, other)))
        return found.turned() if found is not None and found.a != one else found

    @property
    def tested(self) -> int:
        """Number of pairs with a test."""
        return sum(pair.p is not None for pair in self.pairs)

    @property
    def best_first(self) -> list[str]:
        """The methods from the highest mean to the lowest; those whose mean is not a number come last."""
        return sorted(self.methods, key=lambda name: (math.isnan(self.means[name]), -self.means[name]))

    @property
    def highest(self) -> str:
        """The method with the highest mean, the first of equal ones."""
        return self.best_first[0]

    @property
    def reference(self) -> str | None:
        """The method that each other one is compared with; None if all pairs are compared."""
        return None if self.compare == "all" else self.highest if self.compare == "best" else self.compare

    @property
    def interim(self) -> bool:
        """Whether searches or runs of any method are missing. Verdicts can change when they are there."""
        return any(values.missing for values in self.values.values())

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The largest groups of methods without any "better" between them, each and all from the highest mean.

        Empty unless all pairs of complete methods were tested.
        """
        tested = [name for name in self.best_first if any(name in (p.a, p.b) and p.p is not None for p in self.pairs)]
        if self.compare != "all" or not tested:
            return ()
        apart = {frozenset((pair.a, pair.b)) for pair in self.pairs if pair.better}
        joined = {
            name: {other for other in tested if other != name and frozenset((name, other)) not in apart}
            for name in tested
        }
        rank = {name: number for number, name in enumerate(tested)}
        groups = [sorted(group, key=rank.__getitem__) for group in _cliques(set(), set(tested), set(), joined)]
        return tuple(tuple(group) for group in sorted(groups, key=lambda group: [rank[name] for name in group]))


def compare_methods(
    values: Mapping[str, MethodValues],
    unit: Unit = "search",
    compare: str = "all",
    alpha: float = ALPHA,
    margin: float = MARGIN,
    resolution: float = 0.0,
    assumed: SearchDeviation | None = None,
) -> ComparisonResult:
    """Compare methods.

    The probability that the family makes any wrong claim, "better", "beyond" or "within", is at most `alpha`;
    `make calibrate` measures it, and docs/comparisons.md lists where it does not hold. Only complete methods are
    tested. Methods that are not complete count in the correction.

    Args:
        values: Values by method, in the experiment's order.
        unit: What the values are. With `single search` the deviation of a search is `assumed`.
        compare: `all` pairs, each with the `best`, or each with the method of this name.
        alpha: Bound of the probability of a wrong claim.
        margin: Methods that differ by less count as equal, in the unit of the values.
        resolution: Smallest step of the score.
        assumed: Deviation between the means of single searches. None is not known: there are no verdicts.
    """
    if compare not in ("all", "best", *values):
        raise ValueError(f"compare {compare!r}: use all, best, or one of the methods {', '.join(values)}")
    named = {name: _untested(given, unit, assumed) for name, given in values.items()}
    ordered = _ordered(values, compare)
    tested = [name for name in ordered if named[name] is None]
    if compare != "all" and ordered[:1] != tested[:1]:
        tested = []  # The reference is not complete.
    verdicts: dict[tuple[str, str], dict[str, Any]] = {}
    if len(tested) > 1:
        if unit == "single search" and assumed is not None:
            differences = _of_single_searches(values, tested, assumed, resolution)
        else:
            differences = _errors(values, tested, resolution).pairs()
        verdicts = _verdicts(tested, differences, compare, len(values), alpha, margin, one_step=unit == "single search")
    pairs = tuple(_pair(values, a, b, named, verdicts) for a, b in _asked(ordered, compare))
    settings = None
    if unit == "single search":
        settings = compare_methods(values, "run", compare, alpha, margin, resolution)
    return ComparisonResult(values, pairs, compare, unit, alpha, margin, assumed, settings)


def _ordered(values: Mapping[str, MethodValues], compare: str) -> list[str]:
    """The methods with values, those that others are compared with first."""
    names = [name for name, given in values.items() if given.units]
    if compare == "best":
        return sorted(names, key=lambda name: (math.isnan(values[name].mean), -values[name].mean))
    return sorted(names, key=lambda name: name != compare)


def _asked(ordered: Sequence[str], compare: str) -> Iterator[tuple[str, str]]:
    firsts = ordered if compare == "all" else ordered[:1] if compare in ("best", *ordered[:1]) else ()
    for number, a in enumerate(firsts):
        for b in ordered[number + 1 :]:
            yield a, b


def _untested(given: MethodValues, unit: Unit, assumed: SearchDeviation | None) -> Untested | None:
    if given.missing or not all(map(math.isfinite, given.units)):
        return given.missing or "runs missing"
    if unit == "single search" and given.searched and assumed is None:
        return "search not known"
    return None if given.constant or len(given.units) > 1 else "single runs"


def _errors(values: Mapping[str, MethodValues], names: Sequence[str], resolution: float) -> MeanErrors:
    """Errors of the means. Methods that were searched pool their variances, and so do those that were not."""
    means = np.array([values[name].mean for name in names])
    squares = np.full(len(names), max(resolution**2 / 12, np.finfo(float).tiny))
    degrees = np.full(len(names), MOST_DEGREES)
    for searched in (True, False):
        own = [i for i, name in enumerate(names) if values[name].searched == searched and not values[name].constant]
        if own:
            variances = np.array([np.var(values[names[i]].units, ddof=1) for i in own])
            pooled = pool_or_own(means[own], variances, [len(values[names[i]].units) for i in own], resolution)
            squares[own], degrees[own] = np.maximum(pooled.squares, np.finfo(float).tiny), pooled.degrees
    return MeanErrors(means, squares, degrees)


def _of_single_searches(
    values: Mapping[str, MethodValues], names: Sequence[str], assumed: SearchDeviation, resolution: float
) -> PairDifferences:
    given = [values[name] for name in names]
    varied = [0.0 if one.constant else float(np.var(one.units, ddof=1)) for one in given]
    floor = max(resolution**2 / 12, np.finfo(float).tiny)
    return with_assumed_search(
        np.array([one.mean for one in given]),
        np.maximum(varied, floor),
        np.array([float(len(one.units)) for one in given]),
        np.array([WIDENING * assumed.deviation if one.searched and not one.constant else 0.0 for one in given]),
        assumed.degrees,
    )


def mean_half_widths(values: Mapping[str, MethodValues], resolution: float = 0.0) -> dict[str, float]:
    """Half widths of the 95 % intervals of means over searches, for the methods with at least two complete searches.

    The variances are those of the comparison: pooled over the methods, or the method's own if that is larger.
    """
    names = [name for name, given in values.items() if not given.constant and not given.missing and given.units[1:]]
    errors = _errors(values, names, resolution)
    widths = special.stdtrit(errors.degrees, 0.975) * np.sqrt(errors.squares)
    return dict(zip(names, widths.tolist(), strict=True))


def _verdicts(
    names: Sequence[str],
    differences: PairDifferences,
    compare: str,
    methods: int,
    alpha: float,
    margin: float,
    *,
    one_step: bool,
) -> dict[tuple[str, str], dict[str, Any]]:
    """The numbers and verdicts of the tested pairs, by the names of both."""
    asked = list(_asked(names, compare))
    # Of all pairs, those with the first method, which is the reference, come first.
    error, degrees = differences.error[: len(asked)], differences.degrees[: len(asked)]
    tested = PairDifferences(differences.difference[: len(asked)], error, degrees)
    adjust = adjusted_in_one_step if one_step else adjusted
    adjust_equal = adjusted_in_one_step if compare == "best" else adjust
    better = np.minimum(adjust(tested.p, compare, methods) / SHARE_OF_BETTER, 1)
    columns = {
        "half_width": tested.half_width(),
        "degrees": degrees,
        "p": tested.p,
        "p_better": better,
        # One-sided, so it could be below the two-sided p where the margin is small beside the error.
        "p_beyond": np.clip(adjust(tested.p_beyond(margin), compare, methods) / SHARE_OF_BETTER, better, 1),
        "p_equal": np.minimum(adjust_equal(tested.p_equal(margin), compare, methods) / (1 - SHARE_OF_BETTER), 1),
        "smallest": smallest_detectable(error, degrees, compare, methods, alpha),
        **dict(zip(("share_better", "share_within", "share_worse"), tested.shares(margin).T, strict=True)),
    }
    verdicts: dict[tuple[str, str], dict[str, Any]] = {}
    for index, names_of_pair in enumerate(asked):
        numbers: dict[str, Any] = {key: float(column[index]) for key, column in columns.items()}
        if numbers["p_better"] < alpha:
            numbers["direction"] = "a better" if tested.difference[index] > 0 else "b better"
        if min(numbers["p_beyond"], numbers["p_equal"]) < alpha:
            numbers["size"] = "beyond" if numbers["p_beyond"] < alpha else "within"
        verdicts[names_of_pair] = numbers
    return verdicts


def smallest_detectable(error: Numbers, degrees: Numbers, compare: str, methods: int, alpha: float = ALPHA) -> Numbers:
    """Compute the smallest true difference that would be called better with a probability of 80 %.

    It is (t(1 - level / 2) + t(0.8)) times the standard error. The level is corrected as for the smallest p value.
    """
    level = corrected_level(compare, methods, alpha)
    return np.asarray((special.stdtrit(degrees, 1 - level / 2) + special.stdtrit(degrees, POWER)) * error)


def corrected_level(compare: str, methods: int, alpha: float = ALPHA) -> float:
    """Return the level of "better" for the smallest p value of a family."""
    factor = least_factor(methods) if compare == "best" else family(compare, methods)
    return SHARE_OF_BETTER * alpha / factor


def _pair(
    values: Mapping[str, MethodValues],
    a: str,
    b: str,
    untested: Mapping[str, Untested | None],
    verdicts: Mapping[tuple[str, str], Mapping[str, Any]],
) -> ComparedPair:
    one, other = values[a], values[b]
    return ComparedPair(
        a,
        b,
        one.mean - other.mean,
        units_a=len(one.units),
        units_b=len(other.units),
        runs_a=one.runs,
        runs_b=other.runs,
        untested=None if (a, b) in verdicts else untested[a] or untested[b],
        **verdicts.get((a, b), {}),
    )


def _cliques(
    chosen: set[str], candidates: set[str], done: set[str], joined: Mapping[str, set[str]]
) -> Iterator[Sequence[str]]:
    """All maximal sets of joined names with at least two members (Bron and Kerbosch 1973, with pivots)."""
    if not candidates and not done:
        if len(chosen) > 1:
            yield sorted(chosen)
        return
    pivot = max(sorted(candidates | done), key=lambda name: len(joined[name] & candidates))
    for name in sorted(candidates - joined[pivot]):
        yield from _cliques(chosen | {name}, candidates & joined[name], done & joined[name], joined)
        candidates, done = candidates - {name}, done | {name}
