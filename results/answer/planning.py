"""What a budget can see: the smallest difference that searches show, and the searches that a difference takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import special

from results.answer.answers import Answer
from results.answer.compare import differences_of
from results.answer.deviations import SearchDeviation, nearest_search_deviation, run_deviation, search_deviation
from results.answer.pair_tests import (
    POWER,
    Numbers,
    corrected_level,
    pairs_of,
    place_of,
    pool_or_own,
    smallest_detectable,
)
from results.answer.question import ALPHA, Question
from results.answer.values import Pair

MOST_UNITS = 1000
"""Largest number of searches or runs that is looked for."""

_SIMULATED_PAIRS = 8_000


@dataclass(frozen=True)
class Detectable:
    """What an experiment can see. Differences are in the unit of the values.

    Attributes:
        units: Searches of each method, or runs if nothing is searched.
        deviation: Standard deviation from unit to unit; None if it is not known, and then the next three are None too.
        smallest: Smallest true difference that is called better with a probability of 80 %; None if there is no test.
        one_more: The same with one unit more of each method.
        needed: Units of each method for `wanted`; also None if more than `MOST_UNITS`.
        wanted: A difference of interest; None without one.
        source: Where the deviation is from: `this experiment`, `these scores` or a record; empty for a given one.
    """

    methods: int
    units: int
    deviation: float | None
    smallest: float | None
    one_more: float | None
    needed: int | None
    wanted: float | None
    source: str


def detectable(question: Question, methods: int, found: Answer | None = None) -> Detectable:
    """Compute what a budget can see in the asked score, at a planned look with the level of this look.

    The difference of interest is the margin of equality. The deviation is that of the answer's own searches or runs
    if it has any, else that of the nearest record.
    """
    units, margin = question.units, question.bound
    known, source = deviation_behind(question, found)
    if known is None:
        return Detectable(methods, units, None, None, None, None, margin, "")
    deviation = known.deviation
    alpha = ALPHA * units / sum(question.looks) if question.looks else ALPHA

    def smallest(count: int) -> float | None:
        if count > 1:
            return deviation * smallest_difference(methods, count, question.compare, alpha)
        return smallest_of_one_search(known, methods, question.compare) if question.sample.test == "assumed" else None

    needed = None if margin is None else units_for(methods, margin / deviation, question.compare)
    return Detectable(methods, units, deviation, smallest(units), smallest(units + 1), needed, margin, source)


def deviation_behind(question: Question, found: Answer | None = None) -> tuple[SearchDeviation | None, str]:
    """Return the deviation that what a budget can see follows from, and its source as in `Detectable`."""
    known = _deviation(question, found)
    source = "" if known is None or known.given else known.record
    if source == SearchDeviation.record and question.experiment is None:
        source = "these scores"
    return known, source


def _deviation(question: Question, found: Answer | None) -> SearchDeviation | None:
    """The deviation of what is compared: the answer's own, or that of a record."""
    if question.sample.test == "assumed" or (question.assumed is not None and question.assumed.given):
        return question.assumed
    if not question.sample.of_searches:
        return run_deviation([] if found is None else [own.units for own in found.values.values()])
    if found is not None:
        between = search_deviation(found.searches)
        if between is not None and between.deviation > 0:
            return between
    if question.experiment is None:
        return None
    return nearest_search_deviation(question.experiment, question.score, question.embeddings)


def smallest_of_one_search(assumed: SearchDeviation, methods: int, compare: str = "all") -> float:
    """Return the smallest difference that one search of each method shows, if an assumed deviation is doubled."""
    error = np.array(2**0.5 * assumed.taken)
    level = corrected_level(compare, methods, ALPHA)
    return float(smallest_detectable(error, np.array(float(assumed.degrees)), level))


def seen_with(found: Answer, more: int) -> dict[frozenset[str], float]:
    """Return the smallest difference that each tested pair shows with so many units more of each method.

    They are those of the pair's own test: with its variances, and with the degrees of freedom of as many values.
    """
    tested = [pair for pair in found.pairs if pair.smallest is not None]
    if not tested or found.question.sample.test == "assumed":
        return {}
    names = _names_of(tested)
    smallest = _smallest_with(found, names, more, np.array([_place_of(pair, names) for pair in tested]))
    return {frozenset((pair.a, pair.b)): one for pair, one in zip(tested, smallest.tolist(), strict=True)}


def _place_of(pair: Pair, names: Sequence[str]) -> int:
    """The place of a pair among all pairs of the names."""
    first, second = sorted((names.index(pair.a), names.index(pair.b)))
    return place_of(first, second, len(names))


def _names_of(pairs: Sequence[Pair]) -> list[str]:
    return list(dict.fromkeys(key for pair in pairs for key in (pair.a, pair.b)))


def _smallest_with(found: Answer, names: Sequence[str], more: int, places: Any) -> Numbers:
    """The smallest differences that the pairs at these places among all of the names show with more units of each."""
    question = found.question
    differences = differences_of(question, found.values, names, more)
    level = corrected_level(question.compare, len(question.compared), found.look_level or question.alpha)
    return smallest_detectable(differences.error[places], differences.degrees[places], level)


def more_for(found: Answer, pair: Pair, wanted: float) -> int | None:
    """Return how many units more of each method a pair takes to show a difference; None above `MOST_UNITS`."""
    if pair.smallest is None or found.question.sample.test == "assumed":
        return None
    names = _names_of([one for one in found.pairs if one.smallest is not None])
    place = _place_of(pair, names)

    return _least(lambda more: float(_smallest_with(found, names, more, place)) <= wanted, 0)


def _least(is_enough: Callable[[int], bool], first: int) -> int | None:
    """The least number from the first on that is enough, as all larger ones are; None above `MOST_UNITS`."""
    low, high = first - 1, max(1, first)
    while not is_enough(high):
        low, high = high, 2 * high
        if low > MOST_UNITS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high if high <= MOST_UNITS else None


@cache
def smallest_difference(methods: int, units: int, compare: str = "all", alpha: float = ALPHA) -> float:
    """Compute the smallest difference that is called better with a probability of 80 %, in deviations of a unit.

    The correction is that of the smallest p value of the family. The units are normal and vary equally. Tables are
    simulated with a fixed seed, since estimated variances differ between tables.
    """
    generator = np.random.default_rng(0)
    shape = (max(50, _SIMULATED_PAIRS // len(pairs_of(methods)[0])), methods)
    means = generator.standard_normal(shape) / np.sqrt(units)
    variances = generator.chisquare(units - 1, shape) / (units - 1)
    pairs = pool_or_own(means, variances, units).pairs()
    level = corrected_level(compare, methods, alpha)
    needed = special.stdtrit(pairs.degrees, 1 - level / 2) * pairs.error - pairs.difference
    return float(np.quantile(needed, POWER))


@cache
def units_for(methods: int, difference: float, compare: str = "all") -> int | None:
    """Return the searches (or runs) of each method that a difference in their deviations takes.

    None above `MOST_UNITS`.
    """
    return _least(lambda units: smallest_difference(methods, units, compare) <= difference, 2)
