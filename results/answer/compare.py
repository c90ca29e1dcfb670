"""The one comparison of methods on one score, with a verdict for every pair that was asked for.

Marks, sentences, tables, exports and claims read the answer, so that they cannot contradict each other. People ask
whether a method is better, and its result hangs on its search more than on its runs. So the data are the means of
complete searches. Where each method was searched once, the deviation of a search is assumed from a kept record. Where
nothing was searched, the runs are the data, and the verdicts are about the given settings.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from results.answer.answers import Answer
from results.answer.deviations import FEWEST_DEGREES, SearchDeviation, nearest_search_deviation
from results.answer.pair_tests import (
    SHARE_OF_BETTER,
    MeanErrors,
    Numbers,
    PairDifferences,
    adjusted,
    adjusted_in_one_step,
    break_even,
    corrected_level,
    family,
    holm,
    paired_differences,
    pairs_of,
    place_of,
    signed_rank,
    smallest_detectable,
    textbook_p,
    welch_p,
    with_assumed_search,
)
from results.answer.question import ALPHA, Question
from results.answer.typical import mean_errors, method_values
from results.answer.values import MOST_RUNS, Direction, MethodValues, Pair, Runs, Untested
from results.reading.scores_table import FEWEST_DATASETS


def record_of_searches(found: Answer) -> SearchDeviation | None:
    """Return the deviation of the nearest record where searches of losses are repeated, and say less than a record.

    Few searches can happen to agree. Simulated with two losses of three searches, claims that hold with it came again
    in 78 to 86 % of repetitions, others in 35 to 57 %. No verdict takes it: more of them would be wrong than right.
    """
    question = found.question
    losses = [own for key in question.compared if _is_loss(own := found.values[key]) and own.units]
    if not question.sample.of_searches or question.experiment is None or not losses:
        return None
    if sum(len(own.units) - 1 for own in losses) >= FEWEST_DEGREES:
        return None
    return nearest_search_deviation(question.experiment, question.score, question.embeddings)


def _is_loss(own: MethodValues) -> bool:
    return own.planned.searched and own.planned.trained and not own.planned.constant


def compare(
    question: Question, values: Mapping[str, MethodValues], only: tuple[str, str] | None = None
) -> tuple[Pair, ...]:
    """Compare the methods of a question at its level, all of their values at once; `only` returns one pair of them."""
    compared = {key: values[key] for key in question.compared}
    untested = {name: _untested(given, question) for name, given in compared.items()}
    ordered = _ordered(compared, question.compare, question.sign)
    tested = [name for name in ordered if untested[name] is None]
    if question.compare != "all" and ordered[:1] != tested[:1]:
        tested = []  # The one that others are compared with is not complete.
    verdicts: dict[tuple[str, str], dict[str, Any]] = {}
    if len(ordered) > 1 and not question.sample.counted:
        verdicts = _fewest_runs(question, compared, ordered)
    elif len(tested) > 1 and question.sample.test == "ranks":
        verdicts = _over_datasets(tested, compared, question)
    elif len(tested) > 1:
        verdicts = _verdicts(tested, differences_of(question, compared, tested), question, only)
    pairs = []
    for a, b in _asked(ordered, question.compare, only).values():
        found = verdicts.get((a, b)) or {"untested": untested[a] or untested[b]}
        pairs.append(Pair(a, b, compared[a], compared[b], sign=question.sign, **found).agreed())
    return tuple(pairs)


def _fewest_runs(
    question: Question, values: Mapping[str, MethodValues], names: Sequence[str]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Find from how many runs behind each mean on the pairs differ, where nothing says how many there are.

    Every number of runs from 2 to `MOST_RUNS` has its tests, with the correction of their family. With more runs of the
    same means and deviations every p value is smaller, so a claim of fewer runs is one of more.
    """
    asked, shown = _asked(names, question.compare), []
    for count in range(2, MOST_RUNS + 1):
        known = {name: _of_so_many(values[name], count, question) for name in names}
        tested = _in_family(differences_of(question, known, names), names, question)
        shown.append(_p_better(tested, question)[[*asked]] < question.alpha)
    enough = MOST_RUNS + 1 - np.sum(shown, axis=0)
    return {
        pair: {"untested": "n not known", "fewest": int(fewest) if fewest <= MOST_RUNS else None}
        for pair, fewest in zip(asked.values(), enough, strict=True)
    }


def _of_so_many(own: MethodValues, count: int, question: Question) -> MethodValues:
    """A mean as it would be of so many runs: its deviation is what stands behind it, or follows from the error."""
    spread, _ = own.summary or (0.0, 0)
    return replace(own, summary=(spread * count**0.5 if question.plus_minus == "se" else spread, count))


def differences_of(
    question: Question, values: Mapping[str, MethodValues], names: Sequence[str], more: int = 0
) -> PairDifferences:
    """Return the differences of every two methods with their errors, or those that `more` units of each would have."""
    test = question.sample.test
    if test == "assumed" and question.assumed is not None:
        return _of_single_searches(values, names, question.assumed, question.step)
    if test == "paired":
        return paired_differences(np.array([values[name].units for name in names]), question.folds, question.step, more)
    if test == "welch":
        summaries = [values[name].summary or (0.0, 1) for name in names]
        counts = np.array([count + more for _, count in summaries], dtype=float)
        # Folds share training data (Nadeau and Bengio).
        shares = 1 / counts + (1 / (counts - 1) if question.folds else 0)
        squares = np.maximum([deviation**2 for deviation, _ in summaries], np.finfo(float).tiny) * shares
        # Each method has its own variance, so the test is Welch's.
        means, pool = np.array([values[name].mean for name in names]), np.arange(len(names))
        return MeanErrors(means, squares, counts - 1, pool).pairs()
    return mean_errors(values, names, question.step, question.least_deviation, more).pairs()


def compare_at_looks(question: Question, runs: Runs) -> tuple[float, tuple[Pair, ...]]:
    """Compare methods by their searches after each of the planned looks that was reached; claims stay.

    The family is tested at each look l at the level alpha l / sum(L). So the probability of any wrong claim at any look
    is meant to be at most `alpha`, whatever ends the run. The p values are adjusted for the looks too: the
    smallest over the looks of p times alpha over the level of its look. The other numbers are those of the last look,
    as is the level.
    """
    searches = [len(own.units) for own in method_values(question, runs).values() if not own.planned.constant]
    reached = max([question.looks[0], *searches])
    results: list[tuple[float, tuple[Pair, ...]]] = []
    for look in (one for one in question.looks if one <= reached):
        at_look = _at_look(question, look)
        results.append((at_look.alpha, compare(at_look, method_values(at_look, _first_searches(at_look, runs)))))
    level, last = results[-1]
    return level, tuple(_over_looks(pair, results, question.alpha) for pair in last)


def _over_looks(pair: Pair, earlier: Sequence[tuple[float, Sequence[Pair]]], alpha: float) -> Pair:
    """A pair of the last look, with the claims of all looks and p values adjusted for them."""
    seen = [(level, one) for level, pairs in earlier if (one := find_pair(pairs, pair.a, pair.b)) and one.p is not None]
    if pair.p is None or not seen:
        return pair
    changes: dict[str, Any] = {
        name: min(1.0, *(getattr(one, name) * alpha / level for level, one in seen))
        for name in ("p_better", "p_beyond", "p_equal")
        if getattr(pair, name) is not None
    }
    for verdict in ("direction", "size"):
        claims = (getattr(one, verdict) for _, one in seen)
        changes[verdict] = next((claim for claim in claims if claim != "cannot tell"), "cannot tell")
    return replace(pair, **changes).agreed()


def _at_look(question: Question, look: int) -> Question:
    methods = {
        key: replace(planned, searches=look) if planned.searches else planned
        for key, planned in question.methods.items()
    }
    return replace(question, methods=methods, alpha=question.alpha * look / sum(question.looks))


def _first_searches(question: Question, runs: Runs) -> Runs:
    """The runs of as many complete searches as a question asks for."""
    first = {}
    for key, own in runs.items():
        planned = question.methods.get(key)
        whole = [(search, values) for search, values in own.items() if planned and len(values) >= planned.runs]
        first[key] = dict(whole[: planned.searches]) if planned and planned.searches else own
    return first


def _ordered(values: Mapping[str, MethodValues], compare: str, sign: int) -> list[str]:
    """The methods with values, those that others are compared with first."""
    names = [name for name, given in values.items() if given.units]
    if compare == "best":
        return sorted(names, key=lambda name: (math.isnan(values[name].mean), -sign * values[name].mean))
    return sorted(names, key=lambda name: name != compare)


def _asked(ordered: Sequence[str], compare: str, only: tuple[str, str] | None = None) -> dict[int, tuple[str, str]]:
    """The pairs that are asked for, or the one of `only`, by their places among those of all methods (`pairs_of`)."""
    firsts = ordered if compare == "all" else ordered[:1] if compare in ("best", *ordered[:1]) else ()
    if only is None:
        return dict(enumerate((a, b) for number, a in enumerate(firsts) for b in ordered[number + 1 :]))
    if not {*only} <= {*ordered}:
        return {}
    first, second = sorted(map(ordered.index, only))
    return {place_of(first, second, len(ordered)): (ordered[first], ordered[second])} if first < len(firsts) else {}


def _untested(given: MethodValues, question: Question) -> Untested | None:
    if given.missing or not all(map(math.isfinite, given.units)):
        return given.missing or "runs missing"
    test, assumed = question.sample.test, question.assumed
    if test == "assumed" and given.planned.searched and assumed is None:
        return "search not known"
    if test == "ranks" and len(given.units) < FEWEST_DATASETS:
        return "fewer than 6 datasets"
    stated = test == "assumed" and assumed is not None and assumed.given
    return None if given.planned.constant or given.n > 1 or stated else "single runs"


def _of_single_searches(
    values: Mapping[str, MethodValues], names: Sequence[str], assumed: SearchDeviation, resolution: float
) -> PairDifferences:
    given = [values[name] for name in names]
    varied = [float(np.var(one.units, ddof=1)) if one.units[1:] and not one.planned.constant else 0.0 for one in given]
    floor = max(resolution**2 / 12, np.finfo(float).tiny)
    return with_assumed_search(
        np.array([one.mean for one in given]),
        np.maximum(varied, floor),
        np.array([float(len(one.units)) for one in given]),
        np.array([assumed.taken if one.planned.searched else 0.0 for one in given]),
        assumed.degrees,
    )


def _verdicts(
    names: Sequence[str], differences: PairDifferences, question: Question, only: tuple[str, str] | None
) -> dict[tuple[str, str], dict[str, Any]]:
    """The numbers and verdicts of the tested pairs, by the names of both."""
    pairs = _asked(names, question.compare, only)
    places = np.array([*pairs], dtype=np.intp)
    own = differences.at(places)
    level = corrected_level(question.compare, len(question.compared), question.alpha)
    columns = {
        "half_width": own.half_width(),
        "degrees": own.degrees,
        **{name: p[places] for name, p in _p_values(_in_family(differences, names, question), question).items()},
        "smallest": smallest_detectable(own.error, own.degrees, level),
    }
    if question.sample.about == "settings":
        columns["break_even"] = break_even(own.difference, own.error, own.degrees, level)
    verdicts: dict[tuple[str, str], dict[str, Any]] = {}
    for index, pair in enumerate(pairs.values()):
        numbers: dict[str, Any] = {key: float(column[index]) for key, column in columns.items()}
        numbers["direction"] = _direction(numbers["p_better"], own.difference[index], question.sign, question.alpha)
        if question.bound is not None and min(numbers["p_beyond"], numbers["p_equal"]) < question.alpha:
            numbers["size"] = "beyond" if numbers["p_beyond"] < question.alpha else "within"
        verdicts[pair] = numbers
    return verdicts


def _in_family(differences: PairDifferences, names: Sequence[str], question: Question) -> PairDifferences:
    """The pairs that are tested: all, or those with the first method, which is the reference. They come first."""
    return differences if question.compare == "all" else differences.at(slice(len(names) - 1))


def _p_values(tested: PairDifferences, question: Question) -> dict[str, Numbers]:
    """The p values of the pairs of a family: as they are, and adjusted for each of the claims."""
    compare, methods = question.compare, len(question.compared)
    adjust, better = _adjustment(question), _p_better(tested, question)
    values = {"p": tested.p, "p_better": better}
    if (margin := question.bound) is not None:
        beyond = np.minimum(adjust(tested.p_beyond(margin), compare, methods) / SHARE_OF_BETTER, 1)
        # The data choose the direction, so a one-sided test alone would err twice as often.
        values["p_beyond"] = np.maximum(better, beyond)
        adjust_equal = adjusted_in_one_step if compare == "best" else adjust
        equal = adjust_equal(tested.p_equal(margin), compare, methods)
        values["p_equal"] = np.minimum(equal / (1 - SHARE_OF_BETTER), 1)
    return values


def _p_better(tested: PairDifferences, question: Question) -> Numbers:
    own = _adjustment(question)(tested.p, question.compare, len(question.compared))
    return np.asarray(np.minimum(own / SHARE_OF_BETTER, 1))


def _adjustment(question: Question) -> Callable[[Numbers, str, int], Numbers]:
    return adjusted_in_one_step if question.sample.test == "assumed" else adjusted


def _direction(p_better: float, difference: float, sign: int, alpha: float) -> Direction:
    if p_better < alpha:
        return "a better" if sign * difference > 0 else "b better"
    return "cannot tell"


def _over_datasets(
    names: Sequence[str], values: Mapping[str, MethodValues], question: Question
) -> dict[tuple[str, str], dict[str, Any]]:
    """The numbers and verdicts of pairs whose sample are the datasets, corrected by Holm's method."""
    asked = [*_asked(names, question.compare).values()]
    found = [signed_rank(np.subtract(values[a].units, values[b].units)) for a, b in asked]
    p = [one.p for one in found]
    # The data choose the best, so any of all pairs could have had its test.
    count = family(question.compare, len(question.compared))
    better = holm(p, least=count if question.compare == "best" else 1, tests=count)
    verdicts: dict[tuple[str, str], dict[str, Any]] = {}
    for pair, one, adjusted_p in zip(asked, found, better.tolist(), strict=True):
        ends = one.low, one.high
        direction = _direction(adjusted_p, one.median, question.sign, question.alpha)
        numbers = {"p": one.p, "p_better": adjusted_p, "shift": one.median, "ends": ends}
        verdicts[pair] = {**numbers, "direction": direction}
    return verdicts


def find_pair(pairs: Sequence[Pair], one: str, other: str) -> Pair | None:
    """Return a pair with `one` as its a; None if it is not there."""
    found = next((pair for pair in pairs if {pair.a, pair.b} == {one, other}), None)
    return found.turned() if found is not None and found.a != one else found


def plain_test(question: Question, pair: Pair) -> tuple[str, float] | None:
    """Return the textbook's test of a pair alone and its p value, for a reader to see what ours changes.

    It takes all values, also those that are set aside, pools nothing and corrects nothing. None where it has no answer.
    """
    a, b = pair.of_a, pair.of_b
    if not question.sample.counted:
        return None
    if question.sample.test == "ranks":
        return None if pair.p is None else ("Wilcoxon's signed-rank test", pair.p)
    if a.summary and b.summary:
        p = welch_p(*((own.mean, own.summary[0] ** 2, own.summary[1]) for own in (a, b) if own.summary))
        return None if math.isnan(p) else ("Welch's t test", p)
    paired = question.sample.paired
    one, other = (np.array([*own.units, *own.failed]) for own in (a, b))
    if min(len(one), len(other)) < 2 or (paired and len(one) != len(other)):
        return None
    p = textbook_p(one, other, paired=paired)
    return None if math.isnan(p) else ("paired t test" if paired else "Welch's t test", p)


def gains_over(
    tuned: Mapping[str, MethodValues],
    default: Mapping[str, MethodValues],
    rows: Mapping[str, str],
    step: float = 0.0,
    alpha: float = ALPHA,
    sign: int = 1,
) -> tuple[Pair, ...]:
    """Compare the searches of methods with runs of their default settings, of methods with two of each or more.

    Returns a pair of each method with its row of defaults, the largest gain first. The tests are a family of their own,
    corrected by Holm's method; nothing is said about the margin. The variances are those of the comparison: searches
    pool theirs, and so do runs of defaults. Between the two the degrees of freedom are Satterthwaite's.

    Args:
        rows: The method of each row of defaults, by its key. The defaults may be those of another experiment.
        step: Smallest step of the score.
        alpha: Bound of the probability that any gain is claimed where there is none.
        sign: 1 if a higher score is better, else -1.
    """
    both = [(method, row) for row, method in rows.items() if _whole(tuned.get(method)) and _whole(default.get(row))]
    if not both:
        return ()
    sides = {f"tuned {method}": tuned[method] for method, _ in both}
    sides |= {f"default {row}": default[row] for _, row in both}
    found = mean_errors(sides, list(sides), step).pairs()
    first, second = pairs_of(len(sides))
    own = np.flatnonzero(second - first == len(both))
    found = PairDifferences(found.difference[own], found.error[own], found.degrees[own])
    columns = {
        "half_width": found.half_width(),
        "degrees": found.degrees,
        "p": found.p,
        "p_better": holm(found.p),
        "smallest": smallest_detectable(found.error, found.degrees, alpha / len(both)),
    }
    pairs = []
    for place, (method, row) in enumerate(both):
        numbers: dict[str, Any] = {key: float(column[place]) for key, column in columns.items()}
        numbers["direction"] = _direction(numbers["p_better"], found.difference[place], sign, alpha)
        pairs.append(Pair(method, row, tuned[method], default[row], sign=sign, **numbers).agreed())
    return tuple(sorted(pairs, key=lambda pair: -sign * pair.difference))


def _whole(own: MethodValues | None) -> bool:
    return own is not None and not own.missing and len(own.units) > 1
