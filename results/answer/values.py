"""The parts of an answer: the values of a method, a pair of methods with its verdict, and a finding."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from results.answer.question import AskedMethod

Direction = Literal["a better", "b better", "cannot tell"]
Size = Literal["beyond", "within", "cannot tell"]
Incomplete = Literal["searches missing", "runs missing", "older evaluation"]
Untested = Incomplete | Literal["single runs", "search not known", "fewer than 6 datasets", "n not known"]

Runs = Mapping[str, Mapping[Any, list[float]]]
"""Values of one score in the runs of each search, by method and by number (or name) of the search."""

MOST_RUNS = 30
"""Of means of an unknown number of runs it is said whether so many would show a difference."""


@dataclass(frozen=True)
class MethodValues:
    """A method's scores, fractions of 1 if the margin is at its default.

    Attributes:
        units: Independent values that did not fail: the means of complete searches where searches are repeated, else
            runs.
        runs: Number of runs behind all values, also behind those that failed.
        planned: What the method is.
        missing: What it lacks; None if it is complete.
        failed: Values that failed, which are set aside (`typical.failed`).
        summary: Deviation and number of the runs, where only their mean is known. The number is 0 if nothing says it.
    """

    units: tuple[float, ...]
    runs: int
    planned: AskedMethod
    missing: Incomplete | None = None
    failed: tuple[float, ...] = ()
    summary: tuple[float, int] | None = None

    @cached_property
    def mean(self) -> float:
        """Mean of the units; NaN without any."""
        return float(np.mean(self.units)) if self.units else math.nan

    @cached_property
    def variance(self) -> float:
        """Variance of the units, of which there are at least two."""
        return float(np.var(self.units, ddof=1))

    @cached_property
    def mean_of_all(self) -> float:
        """Mean of all values, also of those that failed; NaN without any."""
        return float(np.mean([*self.units, *self.failed])) if self.units or self.failed else math.nan

    @property
    def count(self) -> int:
        """Number of all values, also of those that failed."""
        return self.n + len(self.failed)

    @property
    def single(self) -> tuple[float, ...]:
        """The units, as far as they are known one by one."""
        return () if self.summary else self.units

    @property
    def n(self) -> int:
        """Number of values that the mean is over."""
        return self.summary[1] if self.summary else len(self.units)


@dataclass(frozen=True)
class Pair:
    """Method a compared with method b. Differences are in the unit of the values.

    Attributes:
        of_a: Values of a; likewise `of_b`.
        shift: The difference, where it is not that of the means: the median of the differences on datasets (Hodges and
            Lehmann), whose interval has `ends`.
        untested: Why there is no verdict; then all numbers up to `smallest` are None.
        half_width: Half the width of the difference's own 95 % interval, which is not corrected for other pairs.
        over_classes: Half the width of its 95 % interval over the test classes; None if it was not computed.
        p: Two-sided p value of the hypothesis that there is no difference, for this pair alone.
        p_better: p value of "better", adjusted for all claims of the family; 1 if both means disagree, as the next two.
        p_beyond: p value of "beyond the margin", adjusted likewise.
        p_equal: p value of "within the margin", adjusted likewise.
        smallest: Smallest true difference that would be called better with a probability of 80 %.
        break_even: Where runs of given settings are compared, the deviation between searches at which a claim that one
            is better would be gone; 0 without a claim.
        direction: Which method is better, as far as the data can tell.
        size: Whether the difference is beyond the margin or within it, as far as they can tell.
        fewest: Where nothing says how many runs are behind the means, the smallest number of runs of each from which on
            one would be called better; None if not with `MOST_RUNS` either.
        ahead: Name of the method that is better as far as the `extent` goes, which is no verdict about
            methods (`limited`).
        sign: 1 if a higher score is better, else -1.
    """

    a: str
    b: str
    of_a: MethodValues
    of_b: MethodValues
    untested: Untested | None = None
    half_width: float | None = None
    over_classes: float | None = None
    degrees: float | None = None
    p: float | None = None
    p_better: float | None = None
    p_beyond: float | None = None
    p_equal: float | None = None
    smallest: float | None = None
    break_even: float | None = None
    direction: Direction = "cannot tell"
    size: Size = "cannot tell"
    shift: float | None = None
    ends: tuple[float, float] | None = None
    ahead: str | None = None
    fewest: int | None = None
    sign: int = 1

    @property
    def difference(self) -> float:
        """Mean of a minus mean of b, or the median of the differences."""
        return self.of_a.mean - self.of_b.mean if self.shift is None else self.shift

    @property
    def difference_of_all(self) -> float:
        """The same of all values, also of those that failed."""
        return self.of_a.mean_of_all - self.of_b.mean_of_all

    @property
    def means_disagree(self) -> bool:
        """Whether failures turn the order: one is better without those that failed, and the other one with them."""
        return self.shift is None and self.difference * self.difference_of_all < 0

    def agreed(self) -> "Pair":
        """Return the pair without a verdict if its means disagree: nobody calls that better, or equal."""
        if self.p is None or not self.means_disagree:
            return self
        none: dict[str, Any] = {
            name: None if getattr(self, name) is None else 1.0 for name in ("p_better", "p_beyond", "p_equal")
        }
        break_even = None if self.break_even is None else 0.0
        return replace(self, direction="cannot tell", size="cannot tell", break_even=break_even, **none)

    @property
    def behind(self) -> AskedMethod:
        """The method with the worse mean."""
        return (self.of_b if self.sign * self.difference > 0 else self.of_a).planned

    @property
    def extents(self) -> list[str]:
        """What held up the method that is behind, such as `after 400 steps`."""
        return self.behind.extents

    @property
    def extent(self) -> str:
        """The same in one text; empty for nothing."""
        return ", ".join(self.extents)

    def limited(self) -> "Pair":
        """Return the pair without a verdict if the method that is behind was held up: it may be no worse.

        What held up the better one does not matter. Two are called equal only if neither was held up.
        """
        if self.better and self.extent:
            return replace(self, direction="cannot tell", size="cannot tell", ahead=self.better)
        if self.size == "within" and (self.of_a.planned.extents or self.of_b.planned.extents):
            return replace(self, size="cannot tell")
        return self

    @property
    def higher(self) -> str:
        """Name of the method with the better mean."""
        return self.a if self.sign * self.difference >= 0 else self.b

    @property
    def better(self) -> str | None:
        """Name of the method that is claimed to be better, or None."""
        return {"a better": self.a, "b better": self.b}.get(self.direction)

    @property
    def worse(self) -> str | None:
        """Name of the method that is claimed to be worse, or None."""
        return {"a better": self.b, "b better": self.a}.get(self.direction)

    @property
    def verdict(self) -> tuple[str, str] | None:
        """Which method is better, or ahead, or that the two are equal; None if it cannot be told."""
        if ahead := self.better or self.ahead:
            return "better", ahead
        return ("equal", "") if self.size == "within" else None

    @property
    def decided(self) -> bool:
        """Whether more searches can tell no more: they can find that an end is no limit, but mend no cut-off."""
        return bool(self.better or self.size == "within" or (self.ahead and self.behind.cut_off))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the difference's own 95 % interval."""
        if self.half_width is None:
            return self.ends
        return self.difference - self.half_width, self.difference + self.half_width

    def turned(self) -> "Pair":
        """Return the same pair as b compared with a."""
        turned: dict[str, Direction] = {"a better": "b better", "b better": "a better"}
        return replace(
            self,
            a=self.b,
            b=self.a,
            of_a=self.of_b,
            of_b=self.of_a,
            direction=turned.get(self.direction, "cannot tell"),
            shift=None if self.shift is None else -self.shift,
            ends=None if self.ends is None else (-self.ends[1], -self.ends[0]),
        )

    def claimed_size(self, claimed: float) -> Literal["compatible", "excluded"] | None:
        """Tell whether the interval of the difference excludes a claimed one.

        None without an interval, where both means disagree, and where one of the two was held up: the difference is
        then about these steps or ranges.
        """
        held_up = self.of_a.planned.extents or self.of_b.planned.extents
        if self.half_width is None or self.means_disagree or held_up:
            return None
        return "excluded" if abs(self.difference - claimed) > self.half_width else "compatible"


Level = Literal["limit", "warning", "note"]
"""limit: bounds what the results can show. warning: a number may mislead. note: how the numbers came to be."""

Where = Literal["comparison", "data", "search", "training", "origin"]
"""What it is about."""


@dataclass(frozen=True)
class Finding:
    """One caveat: a short sentence, and what follows from it or the numbers behind it."""

    level: Level
    text: str
    where: Where
    detail: str = ""

    @property
    def sentences(self) -> str:
        """Text and detail."""
        return f"{self.text} {self.detail}".strip()
