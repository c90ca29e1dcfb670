"""An answer: the values of the methods, a verdict for every pair that was asked for, and the ranks that follow."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from results.answer import shown
from results.answer.finding import Finding
from results.answer.intervals import Interval
from results.answer.question import Planned, Question
from results.records.experiment_summary import LeftOut
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted

Direction = Literal["a better", "b better", "cannot tell"]
Size = Literal["beyond", "within", "cannot tell"]
Missing = Literal["searches missing", "runs missing", "older evaluation"]
Untested = Missing | Literal["single runs", "search not known"]

Runs = Mapping[str, Mapping[Any, list[float]]]
"""Values of one score in the runs of each search, by method and by number (or name) of the search."""


@dataclass(frozen=True)
class MethodValues:
    """A method's scores, fractions of 1 if the margin is at its default.

    Attributes:
        units: Independent values that did not fail: the means of complete searches where searches are repeated, else
            runs.
        runs: Number of runs behind all values, also behind those that failed.
        planned: What the method is.
        missing: What it lacks; None if it is complete.
        failed: Values that failed, which are set aside (`typical.set_aside`).
    """

    units: tuple[float, ...]
    runs: int
    planned: Planned
    missing: Missing | None = None
    failed: tuple[float, ...] = ()

    @cached_property
    def mean(self) -> float:
        """Mean of the units; NaN without any."""
        return float(np.mean(self.units)) if self.units else math.nan

    @property
    def count(self) -> int:
        """Number of all values, also of those that failed."""
        return len(self.units) + len(self.failed)


@dataclass(frozen=True)
class Pair:
    """Method a compared with method b. Differences are in the unit of the values.

    Attributes:
        of_a: Values of a; likewise `of_b`.
        untested: Why there is no verdict; then all numbers up to `smallest` are None.
        half_width: Half the width of the difference's own 95 % interval, which is not corrected for other pairs.
        over_classes: Half the width of its 95 % interval over the test classes; None if it was not computed.
        p: Two-sided p value of the hypothesis that there is no difference, for this pair alone.
        p_better: p value of "better", adjusted for all claims of the family.
        p_beyond: p value of "beyond the margin", adjusted likewise.
        p_equal: p value of "within the margin", adjusted likewise.
        smallest: Smallest true difference that would be called better with a probability of 80 %.
        break_even: Where runs of given settings are compared, the deviation between searches at which a claim that one
            is better would be gone; 0 without a claim.
        direction: Which method is better, as far as the data can tell.
        size: Whether the difference is beyond the margin or within it, as far as they can tell.
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
        )

    def claimed_size(self, claimed: float) -> Literal["compatible", "excluded"] | None:
        """Tell whether the interval of the difference excludes a claimed one; None without an interval."""
        if self.half_width is None:
            return None
        return "excluded" if abs(self.difference - claimed) > self.half_width else "compatible"


@dataclass(frozen=True)
class Answer:
    """The answer to a question about scores: all that is said of methods is said from here.

    Attributes:
        frame: The scores (`results.records.frame`).
        runs: The values of the asked score.
        values: The values of every method, also of those that are not tested.
        intervals: Mean and 95 % interval of every method with runs.
        pairs: For `all` each method with every later one, else the reference with each other one.
        settings: The settings that the only searches found compared by their runs. It says nothing about methods.
        gains: Methods whose searches are repeated compared with the runs of their default settings (`gains_over`).
        look_level: The level of the last look, if looks were planned.
        find: Finds what a reader must know beside the numbers.
        measured: The experiment that the scores are of, if they are of one.
        find_other_models: Answers the same about single models where it is asked about joined ones, or the other way
            round.
    """

    question: Question
    frame: pd.DataFrame
    runs: Runs
    values: Mapping[str, MethodValues]
    intervals: Mapping[str, Interval]
    pairs: tuple[Pair, ...]
    settings: tuple[Pair, ...] = ()
    gains: tuple[Pair, ...] = ()
    look_level: float | None = None
    find: Callable[["Answer"], Iterable[Finding]] = lambda _: ()
    measured: MeasuredExperiment | None = None
    find_other_models: Callable[["Answer"], "Answer | None"] = lambda _: None
    others: dict[tuple[str, str], "Answer"] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def titles(self) -> dict[str, str]:
        """Titles of the methods by key."""
        return self.question.titles

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What a reader must know beside the numbers."""
        return tuple(self.find(self))

    @cached_property
    def other_models(self) -> "Answer | None":
        """The same answer about single models, or about joined ones; None where there is no such verdict."""
        return self.find_other_models(self)

    @property
    def of_experiment(self) -> MeasuredExperiment:
        """The experiment that it is about; raises ValueError if the scores are those of a user."""
        if self.measured is None:
            raise ValueError("the scores are of no experiment")
        return self.measured

    @property
    def title(self) -> str:
        """Heading of tables and pages."""
        return self.question.title

    methods = cached_property(shown.methods_frame)
    """A row per method, the best first."""
    differences = cached_property(shown.differences_frame)
    """A row per pair that was asked for."""
    _repr_html_ = shown.notebook_html

    @property
    def left_out(self) -> dict[str, LeftOut]:
        """Why methods are not tested against the others, by method."""
        return {key: planned.left_out for key, planned in self.question.methods.items() if planned.left_out}

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """The compared methods with values, in the order of the question."""
        return tuple(key for key in self.question.compared if self.values[key].units)

    @cached_property
    def _by_names(self) -> dict[frozenset[str], Pair]:
        return {frozenset((pair.a, pair.b)): pair for pair in self.pairs}

    def pair(self, one: str, other: str) -> Pair | None:
        """Return a pair with `one` as its a; None if it was not asked for."""
        found = self._by_names.get(frozenset((one, other)))
        return found.turned() if found is not None and found.a != one else found

    @property
    def tested(self) -> int:
        """Number of pairs with a test."""
        return sum(pair.p is not None for pair in self.pairs)

    @property
    def order(self) -> list[str]:
        """The methods as they are shown: the one that others are compared with, then from the highest mean."""
        means = {key: self.values[key].mean for key in self.compared}
        return sorted(means, key=lambda key: (key != self.question.compare, math.isnan(means[key]), -means[key]))

    @property
    def highest(self) -> str:
        """The method with the highest mean, the first of equal ones."""
        return max(self.compared, key=lambda key: -math.inf if math.isnan(mean := self.values[key].mean) else mean)

    @property
    def shown_pairs(self) -> list[Pair]:
        """The pairs in the order of their methods, those with a claim first, then those shown to be equal."""
        pairs = [pair for a, b in combinations(self.order, 2) if (pair := self.pair(a, b))]
        return sorted(pairs, key=lambda pair: (not pair.better, pair.size != "within", pair.untested is not None))

    @property
    def reference(self) -> str | None:
        """The method that each other one is compared with; None if all pairs are compared."""
        compare = self.question.compare
        return None if compare == "all" else self.highest if compare == "best" else compare

    @property
    def interim(self) -> bool:
        """Whether searches or runs of any method are missing. Verdicts can change when they are there."""
        return any(self.values[key].missing for key in self.question.compared)

    @property
    def decided(self) -> bool:
        """Whether every comparison that was asked for has an answer: better, or within the margin."""
        return not self.interim and all(pair.better or pair.size == "within" for pair in self.pairs)

    @property
    def claims(self) -> set[tuple[str, str]]:
        """The pairs of a better and a worse method that are claimed."""
        return {(pair.better, pair.worse) for pair in self.pairs if pair.better and pair.worse}

    @cached_property
    def leading(self) -> frozenset[str]:
        """The tested methods that none is shown to be better than, if any claim is made."""
        if self.interim or self.question.compare not in ("all", "best") or not self.claims:
            return frozenset()
        tested = {key for pair in self.pairs if pair.untested is None for key in (pair.a, pair.b)}
        return frozenset(tested - {worse for _, worse in self.claims})

    @cached_property
    def missing(self) -> dict[str, str]:
        """Which searches or runs of a method are there, such as `1 of 3 searches`, where some are missing."""
        found = {}
        for key, own in self.values.items():
            planned = self.question.methods[key]
            if own.missing == "searches missing":
                found[key] = f"{own.count} of {planned.searches} searches"
            elif own.missing == "older evaluation":
                found[key] = "runs of an older evaluation"
            elif own.missing:
                found[key] = f"{own.runs} of {counted(planned.runs, 'run')}"
        return found

    @property
    def searches(self) -> tuple[tuple[float, ...], ...]:
        """The searches of every method that trains."""
        return tuple(own.units for own in self.values.values() if own.planned.searched and own.planned.trained)

    @property
    def could_have_seen(self) -> tuple[float, float] | None:
        """The smallest and the largest of the differences that the pairs could have seen; None without a test."""
        seen = [pair.smallest for pair in self.pairs if pair.smallest is not None]
        return (min(seen), max(seen)) if seen else None

    @property
    def span(self) -> float:
        """How far the means of the compared methods lie apart."""
        means = [self.values[key].mean for key in self.compared]
        return max(means) - min(means)

    @property
    def failed(self) -> dict[str, tuple[float, ...]]:
        """The searches or runs that failed, by compared method; methods without one are left out."""
        return {key: failed for key in self.compared if (failed := self.values[key].failed)}

    @cached_property
    def rank_intervals(self) -> dict[str, tuple[int, int]]:
        """The places that each method can have by the claims: at 95 %, all of them at once hold the true ranks.

        Empty unless all pairs are compared and some were tested. While searches are missing, they can change.
        """
        if self.question.compare != "all" or not self.tested:
            return {}
        worse = Counter(pair.worse for pair in self.pairs)
        better = Counter(pair.better for pair in self.pairs)
        return {key: (1 + worse[key], len(self.question.compared) - better[key]) for key in self.compared}

    @property
    def final_ranks(self) -> dict[str, tuple[int, int]]:
        """The rank intervals, or nothing while searches or runs are missing."""
        return {} if self.interim else self.rank_intervals
