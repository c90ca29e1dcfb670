"""The one comparison of an experiment: all pairs of its methods on its primary score, with a verdict for every pair.

Marks, sentences, tables and exports read the result of `compare_methods`, so that they cannot contradict each other.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from results.statistics.effects import Effect, paired_effect, unpaired_effect
from results.statistics.pair_tests import (
    TESTS,
    PairDifferences,
    TestName,
    better_p,
    equal_p,
    pairs_of,
    smallest_detectable,
)

RunValues = Mapping[Any, float]
"""A method's values by run. Runs of two methods with equal keys are matched."""

ALPHA = 0.05
MARGIN = 0.005
"""Half a percentage point: methods that differ by less count as equal."""

SHARE_OF_STOPPING = 0.4
"""Share of the level that is spent on stopping methods early, in experiments that may do so."""

FEWEST_RUNS_OF_EFFECT = {"moderated t": 3, "Welch t": 3, "paired t": 4}
"""Fewest runs per method for an effect size, by test.

With fewer, the effect size has at most two degrees of freedom; then its variance is infinite, and it can have any size.
"""

PairVerdict = Literal["a better", "b better", "equal", "cannot tell", "too few runs"]


@dataclass(frozen=True)
class ComparedPair:
    """Method a compared with method b. Differences are in the unit of the values.

    Attributes:
        difference: Mean of a minus mean of b, of the matched runs for a paired test.
        half_width: Half the width of the difference's own 95 % interval, which is not corrected for the other pairs;
            None without a test, as is all up to `effect`.
        p: Two-sided p value of the hypothesis that there is no difference, for this pair alone.
        p_better: p value of "better", adjusted for all claims of the table.
        p_equal: p value of "equal within the margin", adjusted likewise.
        smallest: Smallest true difference that would be called better with a probability of 80 %.
        effect: Effect size; also None if the runs do not vary or are fewer than `FEWEST_RUNS_OF_EFFECT`.
        left_out: Number of runs without a matched run, which a paired test cannot use.
    """

    a: str
    b: str
    test: TestName
    difference: float
    half_width: float | None
    t: float | None
    degrees: float | None
    p: float | None
    p_better: float | None
    p_equal: float | None
    smallest: float | None
    effect: Effect | None
    n_a: int
    n_b: int
    left_out: int
    verdict: PairVerdict

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
        return {"a better": self.a, "b better": self.b}.get(self.verdict)

    @property
    def worse(self) -> str | None:
        """Name of the method that is claimed to be worse, or None."""
        return {"a better": self.b, "b better": self.a}.get(self.verdict)


@dataclass(frozen=True)
class ComparisonResult:
    """All pairs of methods with their verdicts.

    Attributes:
        means: Mean of every method over its runs.
        pairs: Each method with every later one.
        alpha: Bound of the probability that the table makes any wrong claim.
        margin: Methods that differ by less count as equal.
    """

    methods: tuple[str, ...]
    means: Mapping[str, float]
    pairs: tuple[ComparedPair, ...]
    test: TestName
    alpha: float
    margin: float

    @cached_property
    def _by_names(self) -> dict[frozenset[str], ComparedPair]:
        return {frozenset((pair.a, pair.b)): pair for pair in self.pairs}

    def pair(self, one: str, other: str) -> ComparedPair:
        """Return the pair of two methods, in either order."""
        return self._by_names[frozenset((one, other))]

    @property
    def tested(self) -> int:
        """Number of pairs with a test."""
        return sum(pair.p is not None for pair in self.pairs)

    @property
    def highest(self) -> str:
        """The method with the highest mean, the first of equal ones."""
        return max(self.methods, key=lambda name: self.means[name])

    @cached_property
    def untested(self) -> frozenset[str]:
        """Methods that are in no tested pair."""
        tested = {name for pair in self.pairs if pair.p is not None for name in (pair.a, pair.b)}
        return frozenset(self.methods) - tested

    @cached_property
    def leading(self) -> tuple[str, ...]:
        """Tested methods than which no other is better as far as the table can tell, in the given order."""
        worse = {pair.worse for pair in self.pairs}
        return tuple(name for name in self.methods if name not in worse and name not in self.untested)

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The largest groups of methods without any "better" between them, each and all from the highest mean."""
        ordered = sorted(self.methods, key=lambda name: -self.means[name])
        apart = {frozenset((pair.a, pair.b)) for pair in self.pairs if pair.better}
        joined = {
            name: {other for other in ordered if other != name and frozenset((name, other)) not in apart}
            for name in ordered
        }
        rank = {name: number for number, name in enumerate(ordered)}
        groups = [sorted(group, key=rank.__getitem__) for group in _cliques(set(), set(ordered), set(), joined)]
        return tuple(tuple(group) for group in sorted(groups, key=lambda group: [rank[name] for name in group]))


def final_alpha(alpha: float = ALPHA) -> float:
    """Return the level of the final comparison in an experiment that may stop methods early."""
    return (1 - SHARE_OF_STOPPING) * alpha


def compare_methods(
    methods: Mapping[str, RunValues],
    test: TestName = "moderated t",
    alpha: float = ALPHA,
    margin: float = MARGIN,
    constant: Collection[str] = (),
) -> ComparisonResult:
    """Compare every pair of methods.

    The probability that the table makes any wrong claim, "better" or "equal", is at most `alpha`. `make calibrate`
    measures it.

    Args:
        methods: Values by run, by method; fractions of 1 if `margin` is at its default.
        test: `moderated t` uses all runs and borrows variance from the other methods; `paired t` uses matched runs
            only; `Welch t` uses all runs and borrows nothing. If the means of the matched runs and those of all runs
            have opposite orders, no method is called better.
        alpha: Bound of the probability of a wrong claim.
        margin: Methods that differ by less count as equal, in the unit of the values.
        constant: Methods with one run that stands for all, because every other would be equal. They are tested as if
            they had as many runs as the others together.
    """
    if not methods:
        raise ValueError("there are no methods to compare")
    for name, by_run in methods.items():
        if not by_run:
            raise ValueError(f"{name} has no run to compare")
    means = {name: float(np.mean(list(by_run.values()))) for name, by_run in methods.items()}
    tested = _with_all_runs(methods, constant)
    differences = TESTS[test](_aligned(tested))
    pairs = _pairs(tested, means, differences, test, alpha, margin) if len(methods) > 1 else ()
    counted = (_with_made_runs(pair, methods, tested) for pair in pairs)
    return ComparisonResult(tuple(methods), means, tuple(counted), test, alpha, margin)


def _with_all_runs(methods: Mapping[str, RunValues], constant: Collection[str]) -> dict[str, RunValues]:
    keys = dict.fromkeys(key for runs in methods.values() for key in runs)
    return {
        name: dict.fromkeys(keys, *runs.values()) if name in constant and len(runs) == 1 else runs
        for name, runs in methods.items()
    }


def _with_made_runs(pair: ComparedPair, made: Mapping[str, RunValues], tested: Mapping[str, RunValues]) -> ComparedPair:
    """Count the run of a constant method once. An effect size would need the deviation of both methods."""
    n_a, n_b = (
        count if made[name] == tested[name] else len(made[name])
        for name, count in ((pair.a, pair.n_a), (pair.b, pair.n_b))
    )
    effect = pair.effect if (n_a, n_b) == (pair.n_a, pair.n_b) else None
    return replace(pair, n_a=n_a, n_b=n_b, effect=effect)


def _aligned(methods: Mapping[str, RunValues]) -> npt.NDArray[np.float64]:
    """Values with one row per method and one column per run key; NaN where a method lacks the run."""
    columns = {
        key: number for number, key in enumerate(dict.fromkeys(key for runs in methods.values() for key in runs))
    }
    values = np.full((len(methods), len(columns)), np.nan)
    for row, by_run in enumerate(methods.values()):
        for key, value in by_run.items():
            values[row, columns[key]] = value
    return values


def _pairs(
    methods: Mapping[str, RunValues],
    means: Mapping[str, float],
    differences: PairDifferences,
    test: TestName,
    alpha: float,
    margin: float,
) -> Iterator[ComparedPair]:
    adjusted, equal = better_p(differences), equal_p(differences, margin)
    tested = ~np.isnan(differences.degrees)
    undecided = int(np.count_nonzero(tested & ~(adjusted < alpha)))
    columns = {
        "half_width": special.stdtrit(differences.degrees, 0.975) * differences.error,
        "t": differences.t,
        "degrees": differences.degrees,
        "p": differences.p,
        "p_better": adjusted,
        "p_equal": equal,
        "smallest": smallest_detectable(differences.error, differences.degrees, alpha, undecided),
    }
    names = list(methods)
    for index, (first, second) in enumerate(zip(*pairs_of(len(names)), strict=True)):
        a, b = names[first], names[second]
        numbers: dict[str, Any] = {
            key: float(column[index]) if tested[index] else None for key, column in columns.items()
        }
        difference = float(differences.difference[index])
        # Unmatched runs are in the means that a table shows.
        shown = difference * (means[a] - means[b]) > 0
        yield ComparedPair(
            a=a,
            b=b,
            test=test,
            difference=difference,
            **numbers,
            **_runs_and_effect(methods[a], methods[b], test),
            verdict=_verdict(difference, adjusted[index], equal[index], alpha, shown=shown),
        )


def _verdict(difference: float, p_better: float, p_equal: float, alpha: float, *, shown: bool) -> PairVerdict:
    if math.isnan(p_better):
        return "too few runs"
    if p_better < alpha and shown:
        return "a better" if difference > 0 else "b better"
    return "equal" if p_equal < alpha else "cannot tell"


def _runs_and_effect(a: RunValues, b: RunValues, test: TestName) -> dict[str, Any]:
    fewest = FEWEST_RUNS_OF_EFFECT[test]
    if test != "paired t":
        enough = min(len(a), len(b)) >= fewest
        effect = unpaired_effect(list(a.values()), list(b.values())) if enough else None
        return {"n_a": len(a), "n_b": len(b), "left_out": 0, "effect": effect}
    matched = [key for key in a if key in b]
    return {
        "n_a": len(matched),
        "n_b": len(matched),
        "left_out": len(a) + len(b) - 2 * len(matched),
        "effect": paired_effect([a[key] - b[key] for key in matched]) if len(matched) >= fewest else None,
    }


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
