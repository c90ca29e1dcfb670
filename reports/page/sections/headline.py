"""The headline: which methods are better, as far as the comparison of the primary score can tell.

A verdict about methods needs repeated searches, or a record of how far searches differ. Without either the headline
compares the settings that were found. While searches or runs are missing it claims nothing. No lead is called small
unless the pair is claimed to be within the margin.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from reports.figures.intervals import IntervalUnit
from reports.page.material import Material
from reports.wording import capitalized, counted, listed
from results.statistics.comparison_result import ComparedPair, ComparisonResult
from results.statistics.primary_comparison import method_values, primary_score
from results.statistics.search_deviation import SearchDeviation

_NAMED = 3
"""Largest number of methods that are named. More are counted."""

Standing = Literal["better", "worse", "equal", "open", "untested"]


class MissingUnits(NamedTuple):
    """How many searches (or runs) of a method are complete, and how many are planned."""

    complete: int
    planned: int
    unit: IntervalUnit

    @property
    def text(self) -> str:
        """Such as `1 of 3 searches`."""
        return f"{self.complete} of {counted(self.planned, self.unit)}"


def missing_units(material: Material) -> dict[str, MissingUnits]:
    """Return the compared methods whose searches or runs are not complete."""
    summary, missing = material.measured.summary, {}
    for key, values in method_values(material.measured, primary_score(material.measured)).items():
        if values.missing == "searches missing":
            missing[key] = MissingUnits(len(values.units), summary.experiment.search.searches, "search")
        elif values.missing:
            missing[key] = MissingUnits(len(values.units), summary.runs[key], "run")
    return missing


def subject_of(comparison: ComparisonResult) -> str:
    """Return the method that sentences are about: the one that others are compared with, or the highest mean."""
    return comparison.reference or comparison.highest


def standings(comparison: ComparisonResult, subject: str) -> dict[Standing, list[str]]:
    """Group all other planned methods by how the subject stands to them, from the highest mean."""
    found: dict[Standing, list[str]] = {"better": [], "worse": [], "equal": [], "open": [], "untested": []}
    for key in (*comparison.best_first, *(key for key in comparison.values if key not in comparison.methods)):
        if key != subject:
            found[_standing(comparison.pair(subject, key))].append(key)
    return found


def _standing(pair: ComparedPair | None) -> Standing:
    if pair is None or pair.untested:
        return "untested"
    if pair.better:
        return "better" if pair.better == pair.a else "worse"
    return "equal" if pair.size == "within" else "open"


def headline(material: Material) -> str:
    """Say which methods are better, or why that is not known."""
    comparison = material.comparison
    if not material.records:
        return "Nothing was run yet."
    if comparison is None:
        if material.records.keys() & material.measured.summary.compared.keys():
            return "Interim: no search is complete yet. Nothing is claimed before all are."
        return "No method has runs under the common conditions, so nothing is compared."
    return " ".join((_Headline(material, comparison).text(), *_not_compared(material)))


def _not_compared(material: Material) -> Iterator[str]:
    apart = [key for key in material.records if key in material.measured.summary.left_out]
    if apart:
        rows = "1 row is" if len(apart) == 1 else f"{len(apart)} rows are"
        yield f"{rows} under other conditions and not compared."


class _Headline:
    """The headline of one comparison."""

    def __init__(self, material: Material, comparison: ComparisonResult) -> None:
        self.material, self.comparison, self.titles = material, comparison, material.titles
        self.subject = subject_of(comparison)
        self.of = standings(comparison, self.subject)
        self.others = len(comparison.values) - 1
        self.leads = self.subject == comparison.highest

    def text(self) -> str:
        comparison = self.comparison
        if not self.others:
            return self._only()
        if comparison.interim:
            return self._interim()
        if math.isnan(comparison.means[comparison.highest]):
            return "No method has a score that is a number."
        if comparison.unit == "single search":
            return self._single_searches() if comparison.assumed else self._settings_alone()
        return self._compared()

    def _only(self) -> str:
        title = self.titles[self.subject]
        what = "the only method"
        if len(self.material.records) > 1:
            what += " under the common conditions"
        elif self.material.measured.others:
            what += " that was asked for"
        return f"{title} is {what}. There is nothing to compare it with."

    def _interim(self) -> str:
        by_number: dict[MissingUnits, list[str]] = {}
        for key, units in missing_units(self.material).items():
            by_number.setdefault(units, []).append(key)
        parts, before = [], None
        for units in sorted(by_number, reverse=True):
            keys = by_number[units]
            if units[1:] == before:
                parts.append(f"{self._named(keys)} {'has' if len(keys) == 1 else 'have'} {units.complete}")
            else:
                is_complete = f"{'is' if units.complete == 1 else 'are'} complete"
                parts.append(f"{units.text} of {self._named(keys)} {is_complete}")
            before = units[1:]
        best = self.comparison.highest
        so_far = f"; so far {self.titles[best]} has the highest mean"
        if math.isnan(self.comparison.means[best]):
            so_far = ""
        return f"Interim: {', '.join(parts)}. Nothing is claimed before all are{so_far}."

    def _compared(self) -> str:
        """The answer of repeated searches, or of the runs of given settings."""
        title = self.titles[self.subject]
        each, number = self._over(each=True), self._over()
        if not self.comparison.tested:
            mean = self._mean(self.comparison.highest)
            reason = "Single runs tell no methods apart." if number == "1 run" else "No pair of methods can be tested."
            return f"{capitalized(f'{self._given()}{mean}')}. {reason}"
        if self._all_within():
            return f"{capitalized(self._given())}{self._all_equal()} over {each}."
        if len(self.of["better"]) == self.others:
            return f"{self._opening(each)}{title} is better than {self._every()}; {self._lead()}."
        if self.of["better"] or self.of["worse"] or any(pair.better for pair in self.comparison.pairs):
            return self._partly(number, each)
        tell = f"as far as {number} can tell"
        missed = self._easily_missed()
        if self.comparison.compare == "all":
            what = f"no method is better than another {tell}; {self._mean(self.subject)}{self._equal_too()}"
        elif self.leads:
            what = f"{self._mean(self.subject)}, but is not better than any other method {tell}{self._equal_too()}"
        else:
            what = f"{title} is not better or worse than any other method {tell}{self._equal_too()}"
        untested = self.of["untested"]
        were = f" {self._named(untested)} {'was' if len(untested) == 1 else 'were'} not tested." if untested else ""
        return f"{self._opening(each)}{what}{missed}.{were}"

    def _partly(self, number: str, each: str) -> str:
        title, claims = self.titles[self.subject], self._claims()
        if self.leads:
            and_claims = f" and is {claims}" if claims else ""
            first = f"{capitalized(self._given())}{title} has the highest mean over {number}{and_claims}"
        else:
            first = f"{self._opening(each)}{title} is {claims}"
        rest = self._rest()
        if not claims:
            told = sum(pair.better is not None for pair in self.comparison.pairs)
            rest.append(f"{told} of {len(self.comparison.pairs)} pairs can be told apart")
        return f"{'; '.join((first, *rest))}."

    def _settings_alone(self) -> str:
        return (
            f"{self._mean(self.comparison.highest)}. How far two searches of this size differ is not known here; the "
            "table compares the settings that were found, not the methods. Three searches of each would say."
        )

    def _single_searches(self) -> str:
        """The answer of single searches with the deviation of a record."""
        assumed, title = self.comparison.assumed, self.titles[self.subject]
        assert assumed is not None
        summary, better = self.material.measured.summary, len(self.of["better"])
        trials = counted(summary.trials, "trial")
        twice = f"even if searches vary twice as much as the recorded ones ({100 * assumed.deviation:.1f} points)"
        if better == self.others:
            following = "" if self.others == 1 else "the next "
            return (
                f"{title} is better than {self._every()} on {summary.dataset} at {trials}: it leads {following}by "
                f"{self._points(self._next_pair())}, more than the chance of the search explains {twice}."
            )
        found = f"With the settings that one search of {trials} found, {self._mean(self.subject)}"
        differed = searches_differed(assumed, summary.trials)
        if self.leads:
            lead = self._next_pair().difference
            smaller = lead < max(2**0.5 * assumed.deviation, assumed.largest)
            differed += f", {'more than' if smaller else 'and twice that can explain'} its lead of {100 * lead:.1f}"
        if not better and not self.of["worse"]:
            which = "that it is the better method" if self.leads else "which method is better"
            return f"{found}; {differed}: this does not say {which}."
        rest = self._named([*self.of["open"], *self.of["equal"], *self.of["untested"]], "others")
        return f"{found} and is {self._claims()}; from {rest} it cannot be told apart: {differed}."

    def _claims(self) -> str:
        better, worse = len(self.of["better"]), self.of["worse"]
        claims = [f"better than {better} of {counted(self.others, 'other')}"] if better else []
        claims += [f"worse than {self._named(worse)}"] if worse else []
        return " and ".join(claims)

    def _rest(self) -> list[str]:
        phrases: dict[Standing, str] = {
            "equal": f"it is equal to {{}} within {100 * self.comparison.margin:g} points",
            "open": "from {} it cannot be told apart",
            "untested": "it was not tested against {}",
        }
        return [phrase.format(self._named(self.of[of], "others")) for of, phrase in phrases.items() if self.of[of]]

    def _given(self) -> str:
        return "with the given settings, " if self.comparison.unit == "run" else ""

    def _opening(self, each: str) -> str:
        return capitalized(f"{self._given()}over {each}, ")

    def _over(self, *, each: bool = False) -> str:
        number = max(len(values.units) for values in self.comparison.values.values())
        unit = "run" if self.comparison.unit == "run" else "search"
        return counted(number, unit) + (" each" if each else "")

    def _mean(self, key: str) -> str:
        mean = f"{100 * self.comparison.means[key]:.1f}"
        highest = key == self.comparison.highest
        return f"{self.titles[key]} has {f'the highest mean ({mean})' if highest else f'a mean of {mean}'}"

    def _every(self) -> str:
        return "every other method" if self.others > 1 else self._named(self.of["better"])

    def _next_pair(self) -> ComparedPair:
        """The subject and the highest mean of the others."""
        following = next(key for key in self.comparison.best_first if key != self.subject)
        pair = self.comparison.pair(self.subject, following)
        assert pair is not None
        return pair

    def _lead(self) -> str:
        pair = self._next_pair()
        over = "its lead" if self.others == 1 else "its lead over the next"
        within = f", within the margin of {100 * self.comparison.margin:g} points" if pair.size == "within" else ""
        return f"{over} is {self._points(pair)}{_ends(pair)}{within}"

    def _points(self, pair: ComparedPair) -> str:
        return f"{100 * pair.difference:.1f} points"

    def _all_within(self) -> bool:
        pairs = self.comparison.pairs
        return all(pair.size == "within" and not pair.better for pair in pairs) and not self.of["untested"]

    def _all_equal(self) -> str:
        within = f"equal within {100 * self.comparison.margin:g} points"
        if self.comparison.compare == "all" or self.others == 1:
            keys = [self.subject, *self.of["equal"]]
            named = f"all {len(keys)} methods" if len(keys) > _NAMED else listed([self.titles[key] for key in keys])
            text = f"{named} are {within}"
        else:
            text = f"{self.titles[self.subject]} and every other method are {within}"
        return text if self._given() else capitalized(text)

    def _equal_too(self) -> str:
        if not self.of["equal"]:
            return ""
        return f", and it is equal to {self._named(self.of['equal'])} within {100 * self.comparison.margin:g} points"

    def _easily_missed(self) -> str:
        sees = self.material.budget
        if sees is None or sees.smallest is None:
            return ""
        return f", and a true difference of less than {100 * sees.smallest:.1f} points can easily be missed"

    def _named(self, keys: Sequence[str], things: str = "methods") -> str:
        if len(keys) > _NAMED:
            return f"{len(keys)} {things}"
        return listed([self.titles[key] for key in keys])


def _ends(pair: ComparedPair) -> str:
    if pair.low is None or pair.high is None:
        return ""
    return f" ({100 * pair.low:z.1f} to {100 * pair.high:z.1f})"


def searches_differed(assumed: SearchDeviation, trials: int) -> str:
    """Say how far two searches of one method were apart in a record, for searches of so many trials."""
    typical, largest = 100 * 2**0.5 * assumed.deviation, 100 * assumed.largest
    up_to = f" and by up to {largest:.1f}" if largest > typical else ""
    each = counted(min(trials, assumed.trials), "trial")
    return f"searches of one method ({each} each) differed by {typical:.1f} points typically{up_to}"
