"""The outcome of a comparison: the values of the methods, a verdict for every pair, and the ranks that follow."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from results.statistics.deviations import SearchDeviation

Unit = Literal["search", "single search", "run"]
"""What a method's values are: means of repeated searches, the runs of its only search, or runs of a given setting."""

Direction = Literal["a better", "b better", "cannot tell"]
Size = Literal["beyond", "within", "cannot tell"]
FAILED_DEVIATIONS, FAILED_LEAST = 5.0, 0.02
"""A search failed if it lies further below the median of its method's searches than so many deviations of the other
methods' searches, and further than two points."""

Missing = Literal["searches missing", "runs missing", "older evaluation"]
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

    @cached_property
    def mean(self) -> float:
        """Mean of the units; NaN without any."""
        return float(np.mean(self.units)) if self.units else math.nan


@dataclass(frozen=True)
class ComparedPair:
    """Method a compared with method b. Differences are in the unit of the values.

    Attributes:
        of_a: Values of a; likewise `of_b`.
        untested: Why there is no verdict; then all numbers up to `smallest` are None.
        half_width: Half the width of the difference's own 95 % interval, which is not corrected for other pairs.
        p: Two-sided p value of the hypothesis that there is no difference, for this pair alone.
        p_better: p value of "better", adjusted for all claims of the family.
        p_beyond: p value of "beyond the margin", adjusted likewise.
        p_equal: p value of "within the margin", adjusted likewise.
        smallest: Smallest true difference that would be called better with a probability of 80 %.
        direction: Which method is better, as far as the data can tell.
        size: Whether the difference is beyond the margin or within it, as far as they can tell.
    """

    a: str
    b: str
    of_a: MethodValues
    of_b: MethodValues
    untested: Untested | None = None
    half_width: float | None = None
    degrees: float | None = None
    p: float | None = None
    p_better: float | None = None
    p_beyond: float | None = None
    p_equal: float | None = None
    smallest: float | None = None
    direction: Direction = "cannot tell"
    size: Size = "cannot tell"

    @property
    def difference(self) -> float:
        """Mean of a minus mean of b."""
        return self.of_a.mean - self.of_b.mean

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
            of_a=self.of_b,
            of_b=self.of_a,
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
        look_level: The level of the last look, if looks were planned (`compare_at_looks`).
    """

    values: Mapping[str, MethodValues]
    pairs: tuple[ComparedPair, ...]
    compare: str
    unit: Unit
    alpha: float
    margin: float
    assumed: SearchDeviation | None = None
    settings: "ComparisonResult | None" = None
    look_level: float | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods with values, in the experiment's order."""
        return tuple(name for name, values in self.values.items() if values.units)

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
        return sorted(self.methods, key=lambda name: (math.isnan(self.values[name].mean), -self.values[name].mean))

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

    @property
    def decided(self) -> bool:
        """Whether every comparison that was asked for has an answer: better, or within the margin."""
        return not self.interim and all(pair.better or pair.size == "within" for pair in self.pairs)

    @cached_property
    def failed(self) -> dict[str, tuple[float, ...]]:
        """The searches that failed, by method; methods without one are left out.

        A search also failed if it reached less than half of its method's best one. The others' deviation is pooled.
        """
        if self.unit != "search":
            return {}
        found = {}
        searched = {name: own.units for name, own in self.values.items() if own.searched and own.units}
        for name, units in searched.items():
            others = [other for key, other in searched.items() if key != name]
            degrees = max(1, sum(len(other) - 1 for other in others))
            deviation = math.sqrt(sum(np.var(other) * len(other) for other in others) / degrees)
            bound = max(units) / 2
            if len(units) > 2 and deviation > 0:
                bound = max(bound, float(np.median(units)) - max(FAILED_DEVIATIONS * deviation, FAILED_LEAST))
            if low := tuple(unit for unit in units if unit < bound):
                found[name] = low
        return found

    @cached_property
    def rank_intervals(self) -> dict[str, tuple[int, int]]:
        """The places that each method can have by the claims: at 95 %, all of them at once hold the true ranks.

        Empty unless all pairs are compared and some were tested. While searches are missing, they can change.
        """
        if self.compare != "all" or not self.tested:
            return {}
        worse = Counter(pair.worse for pair in self.pairs)
        better = Counter(pair.better for pair in self.pairs)
        return {name: (1 + worse[name], len(self.values) - better[name]) for name in self.methods}

    @property
    def final_ranks(self) -> dict[str, tuple[int, int]]:
        """The rank intervals, or nothing while searches or runs are missing."""
        return {} if self.interim else self.rank_intervals


def place_words(places: tuple[int, int]) -> str:
    """Write the places that a method can have: `2`, or `1 to 3`."""
    low, high = places
    return f"{low}" if low == high else f"{low} to {high}"
