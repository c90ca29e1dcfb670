"""An answer: the values of the methods, a verdict for every pair that was asked for, and the ranks that follow."""

import html
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd

from results.answer.intervals import Interval
from results.answer.question import Question
from results.answer.sample import Sample
from results.answer.scaling import Scaling
from results.answer.values import MOST_RUNS, Finding, MethodValues, Pair, Runs
from results.spec.plan import LeftOut
from results.wording import counted, first_of, place_words

_MOST_ROWS = 30
"""Of more methods or pairs a notebook shows the first and the last ones."""


@dataclass(frozen=True, repr=False)
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
        only: The methods that are shown, if not all are; tests are of all.
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
    only: frozenset[str] = frozenset()

    @cached_property
    def titles(self) -> dict[str, str]:
        """Titles of the methods by key."""
        return self.question.titles

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What a reader must know beside the numbers; `ScoresAnswer` and `ExperimentAnswer` have some."""
        return ()

    @cached_property
    def answered(self) -> dict[tuple[str, str, float], "Answer"]:
        """Answers about other scores of the frame, by metric, embeddings and level, as far as they were asked for."""
        return {}

    @cached_property
    def left_out(self) -> dict[str, LeftOut]:
        """Why methods are not tested against the others, by method."""
        return {key: own.left_out for key, own in self.question.methods.items() if own.left_out and self.shows(key)}

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """The compared methods with values, in the order of the question."""
        return tuple(key for key in self.question.compared if self.values[key].units and self.shows(key))

    def shows(self, method: str) -> bool:
        """Whether a method is shown: all are, unless some were asked for."""
        return not self.only or method in self.only

    @cached_property
    def _by_names(self) -> dict[frozenset[str], Pair]:
        return {frozenset((pair.a, pair.b)): pair for pair in self.pairs}

    def pair(self, one: str, other: str) -> Pair | None:
        """Return a pair with `one` as its a; None if it was not asked for."""
        found = self._by_names.get(frozenset((one, other)))
        return found.turned() if found is not None and found.a != one else found

    @cached_property
    def tested(self) -> int:
        """Number of pairs with a test."""
        return sum(pair.p is not None for pair in self.pairs)

    @cached_property
    def order(self) -> list[str]:
        """The methods as they are shown: the one that others are compared with, then from the best mean."""
        means = {key: self.question.sign * self.values[key].mean for key in self.compared}
        return sorted(means, key=lambda key: (key != self.question.compare, math.isnan(means[key]), -means[key]))

    @cached_property
    def best(self) -> str:
        """The method with the best mean, the first of equal ones."""
        means = {key: self.question.sign * self.values[key].mean for key in self.compared}
        return max(means, key=lambda key: -math.inf if math.isnan(means[key]) else means[key])

    @property
    def best_words(self) -> str:
        """What the best mean is: the `highest mean`, or the `lowest mean` where lower is better."""
        return "lowest mean" if self.question.sign < 0 else "highest mean"

    @cached_property
    def shown_pairs(self) -> list[Pair]:
        """The pairs in the order of their methods, those with a claim first, then those shown to be equal."""
        pairs = [pair for a, b in combinations(self.order, 2) if (pair := self.pair(a, b))]
        return sorted(
            pairs, key=lambda pair: (not pair.better, pair.size != "within", not pair.ahead, pair.untested is not None)
        )

    @property
    def reference(self) -> str | None:
        """The method that each other one is compared with, shown or not; None if all pairs are compared."""
        compare = self.question.compare
        if compare == "best":
            return self.pairs[0].a if self.pairs else self.best
        return None if compare == "all" else compare

    @cached_property
    def interim(self) -> bool:
        """Whether searches or runs of any method are missing. Verdicts can change when they are there."""
        return any(self.values[key].missing for key in self.question.compared)

    @property
    def decided(self) -> bool:
        """Whether every comparison that was asked for has an answer, as far as more searches can give one."""
        return not self.interim and all(pair.decided for pair in self.pairs)

    @property
    def decided_words(self) -> str:
        """The same in words: where trainings that were cut off are in the way, nothing more can be decided."""
        if not self.decided:
            return "not decided"
        return "nothing more can be decided" if any(pair.ahead for pair in self.pairs) else "decided"

    @cached_property
    def claims(self) -> set[tuple[str, str]]:
        """The pairs of a better and a worse method that are claimed."""
        return {(pair.better, pair.worse) for pair in self.shown_pairs if pair.better and pair.worse}

    @cached_property
    def leading(self) -> frozenset[str]:
        """The tested methods that none is shown to be better than, if any claim is made."""
        worse = {pair.worse for pair in self.pairs} - {None}
        if self.interim or self.question.compare not in ("all", "best") or not worse:
            return frozenset()
        return frozenset(key for pair in self.pairs if not pair.untested for key in (pair.a, pair.b)) - worse

    @cached_property
    def missing(self) -> dict[str, str]:
        """Which searches or runs of a method are there, such as `1 of 3 searches`, where some are missing."""
        found = {}
        for key, own in self.values.items():
            planned = self.question.methods[key]
            if not self.shows(key):
                continue
            if own.missing == "searches missing":
                found[key] = f"{own.count} of {counted(planned.searches, 'search')}"
            elif own.missing == "older evaluation":
                found[key] = "runs of an older evaluation"
            elif own.missing:
                found[key] = f"{own.runs} of {counted(planned.runs, 'run')}"
        return found

    @property
    def searches(self) -> tuple[tuple[float, ...], ...]:
        """The searches of every method that trains."""
        return tuple(own.units for own in self.values.values() if own.planned.searched and own.planned.trained)

    def would_have_shown(self, pairs: Iterable[Pair]) -> tuple[float, float] | None:
        """Return the smallest and the largest of the differences that pairs would have shown; None without a test."""
        seen = [min(pair.smallest, self.scaling.largest) for pair in pairs if pair.smallest is not None]
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
    def without_agreement(self) -> list[Pair]:
        """The tested pairs whose means disagree (`Pair.means_disagree`), with the typically better method as a."""
        pairs = [pair for pair in (*self.shown_pairs, *self.gains) if pair.untested is None and pair.means_disagree]
        return [pair if self.question.sign * pair.difference > 0 else pair.turned() for pair in pairs]

    @property
    def sample(self) -> Sample:
        """What the methods' values are: rules and words."""
        return self.question.sample

    @property
    def scaling(self) -> Scaling:
        """How scores and differences are compared and written."""
        return self.question.scaling

    @property
    def limited(self) -> list[Pair]:
        """The pairs of which one is better only as far as something that held up the other goes."""
        return [pair for pair in self.shown_pairs if pair.ahead]

    def ahead_words(self, pair: Pair) -> str:
        """Write which method of such a pair is ahead, and how far that goes: `A better after 400 steps`.

        Nothing of other pairs.
        """
        return f"{self.titles[pair.ahead]} better {pair.extent}" if pair.ahead else ""

    def with_failed_words(self, pair: Pair) -> str:
        """Write the difference that counts failures too, such as `with failed runs -26.1`."""
        return f"with failed {self.sample.words} {self.scaling.gap(pair.difference_of_all, signed=True)}"

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

    @cached_property
    def mean_ranks(self) -> dict[str, float]:
        """The mean rank of each method on the blocks or datasets that all share, 1 for the best."""
        if not self.sample.paired or not self.compared:
            return {}
        values = self.question.sign * np.array([self.values[key].units for key in self.compared])
        ranks = pd.DataFrame(values).rank(ascending=False).mean(axis=1)
        return dict(zip(self.compared, ranks.tolist(), strict=True))

    @cached_property
    def final_ranks(self) -> dict[str, tuple[int, int]]:
        """The rank intervals, or nothing while searches or runs are missing."""
        return {} if self.interim else self.rank_intervals

    @cached_property
    def methods(self) -> pd.DataFrame:
        """A row per method: mean and half width, counts, and the places that it can have.

        Percentages are fractions of 1; what is compared by ratios are logarithms.
        """
        rows = []
        for key in [*self.order, *(key for key in self.intervals if key not in self.compared)]:
            own, interval, places = self.values[key], self.intervals[key], self.final_ranks.get(key)
            left_out = self.left_out[key].note if key in self.left_out else self.missing.get(key, "")
            numbers = (interval.mean, interval.half_width, own.n, len(own.failed), own.runs)
            rows.append((key, self.titles[key], *numbers, *(places or (None, None)), left_out))
        columns = ["method", "title", "mean", "half_width", "n", "failed", "runs", "rank_low", "rank_high", "why_not"]
        types = dict.fromkeys(("rank_low", "rank_high"), "Int64")
        return pd.DataFrame(rows, columns=columns).astype(types).set_index("method")

    @cached_property
    def differences(self) -> pd.DataFrame:
        """A row per pair that was asked for: difference and half width, p values and verdicts.

        Numbers are in the unit of `methods`. `difference_of_all` counts the searches (or runs) that failed too.
        `fewest` is the number of runs from which on one is better, where nothing says how many there are.
        """
        of_pair = ("a", "b", "difference", "difference_of_all", "better", "half_width", "p", "p_better", "smallest")
        columns = [*of_pair, "break_even", "size", "untested", "ahead", "extent", "fewest"]
        rows = [[getattr(pair, name) for name in columns] for pair in self.shown_pairs]
        return pd.DataFrame(rows, columns=columns).astype({"fewest": "Int64"})

    def to_frame(self) -> pd.DataFrame:
        """Return a row per pair as it is shown: percentages in points, and the p value that verdicts follow from."""
        gaps = self.scaling.gap_format()
        rows = [
            {
                "a": self.titles[pair.a],
                "b": self.titles[pair.b],
                "difference": gaps.shown(pair.difference),
                "low": gaps.shown(pair.interval[0]) if pair.interval else math.nan,
                "high": gaps.shown(pair.interval[1]) if pair.interval else math.nan,
                "p_adjusted": pair.p_better,
                "verdict": self.verdict_words(pair),
            }
            for pair in self.shown_pairs
        ]
        return pd.DataFrame(rows)

    def verdict_words(self, pair: Pair) -> str:
        """Write what a pair shows: `A better`, `A better after 400 steps`, `equal` or `cannot tell`."""
        if pair.better:
            return f"{self.titles[pair.better]} better"
        if pair.ahead:
            return self.ahead_words(pair)
        return "equal" if pair.size == "within" else self.untested_words(pair) or pair.direction

    def untested_words(self, pair: Pair) -> str:
        """Write why a pair was not tested; empty if it was.

        Of means of an unknown number n of runs it is what would be shown: `A better if n ≥ 4`.
        """
        if pair.untested != "n not known":
            return pair.untested or ""
        if pair.fewest is None:
            return f"cannot tell even if n = {MOST_RUNS}"
        return f"{self.titles[pair.higher]} better if n ≥ {pair.fewest}"

    def __repr__(self) -> str:
        """Return the answer in a line: what the first pairs show, claims first."""
        lines = []
        for pair in self.shown_pairs:
            size = f"{self.difference_words(pair)}{self.scaling.gap_unit}"
            lines.append(f"{self.of_two(pair)}: {size} ({self.verdict_words(pair)})")
        found = "; ".join(first_of(lines, 3)) if lines else "nothing to compare"
        return f"<{f'{self.question.title}, ' if self.question.title else ''}{self.question.score_name}: {found}>"

    def _would_have_shown_words(self, smallest: float | None) -> str:
        if smallest is None:
            return ""
        return "none" if self.scaling.is_beyond(smallest) else self.scaling.gap(smallest, more=True)

    def _repr_html_(self) -> str:
        """Return methods, pairs and findings as HTML, with numbers in percent or points."""
        scaling, methods, pairs, ranks = self.scaling, self.methods, self.shown_pairs, self.final_ranks
        shown = pd.DataFrame(
            {
                "": methods["title"],
                f"{self.question.score_name},{scaling.unit}".rstrip(","): [
                    scaling.score(mean, None if pd.isna(width) else width, more=True)
                    for mean, width in zip(methods["mean"], methods["half_width"], strict=True)
                ],
                "rank": [place_words(ranks[key]) if key in ranks else "" for key in methods.index],
                "n": [f"{n} ({failed} failed)" if failed else n for n, failed in methods[["n", "failed"]].values],
            }
        )
        compared = pd.DataFrame(
            {
                "": [self.of_two(pair) for pair in pairs],
                scaling.gap_name: [self.difference_words(pair, more=True, signed=True) for pair in pairs],
                "verdict": [self.verdict_words(one) for one in pairs],
                "would have shown": [self._would_have_shown_words(pair.smallest) for pair in pairs],
            }
        )
        tables = [one.to_html(index=False, border=0, max_rows=_MOST_ROWS) for one in (shown, compared) if len(one)]
        findings = "".join(f"<li>{html.escape(finding.sentences)}</li>" for finding in self.findings)
        title = f"<p><strong>{html.escape(self.question.title)}</strong></p>" if self.question.title else ""
        return f"{title}{''.join(tables)}<ul>{findings}</ul>"

    def of_two(self, pair: Pair) -> str:
        """Write what the difference of a pair is of: `A − B`."""
        return self.scaling.of_two(self.titles[pair.a], self.titles[pair.b])

    def difference_words(self, pair: Pair, *, more: bool = False, signed: bool = False, size: bool = False) -> str:
        """Write a difference with its interval: `2.0 ± 0.9`, or `2.0 (0.9 to 3.2)` where this is not symmetric.

        `more` and `signed` are those of `Scaling`; `size` leaves the sign of the difference out. The interval ends
        where differences of two scores end.
        """
        if size and pair.difference < 0:
            pair = pair.turned()
        form = self.scaling.gap_format(more=more, signed=signed)
        if pair.ends is None:
            return form.text(pair.difference, pair.half_width)
        low, high = map(form.text, pair.ends)
        return f"{form.text(pair.difference)} ({low} to {high})"
