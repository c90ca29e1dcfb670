"""Findings that follow from the scores alone: what is missing, what could have been seen, what failed.

About a table of scores that nobody planned more is said: what it takes to tell, and what in it does not hold.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from results.answer.answers import Answer
from results.answer.compare import fragile_claims, record_for_marks
from results.answer.deviations import kept_range, search_deviation
from results.answer.pair_tests import MOST_DEGREES, SHARE_OF_BETTER, break_even, family, power_words
from results.answer.planning import MOST_UNITS, Detectable, detectable, units_for
from results.answer.question import Question
from results.answer.values import Finding, Pair
from results.wording import (
    capitalized,
    counted,
    few,
    first_of,
    in_letters,
    joined,
    listed,
    percent,
    plural,
    some,
    span,
    things,
    verb,
)

NAMED = 3
"""Largest number of claims, pairs and rows that are named. More are counted."""

COARSE = 0.001
"""A score that is rounded to a tenth of a point or more is named."""


def caveats(found: Answer) -> Iterator[Finding]:
    """Say what a reader of any scores must know."""
    kinds = (
        of_missing,
        of_budget,
        of_settings,
        of_means,
        of_marks,
        of_fragile,
        of_constants,
        of_single_searches,
        of_failed,
    )
    for kind in (*kinds, of_looks):
        yield from kind(found)


def of_missing(found: Answer) -> Iterator[Finding]:
    """Name the methods that are not complete."""
    if found.missing:
        named = "; ".join(f"{found.titles[key]} has {units}" for key, units in found.missing.items())
        yield Finding("limit", f"Not finished: {named}.", "comparison", "The results can change.")


def of_budget(found: Answer) -> Iterator[Finding]:
    """Say which differences the budget can show, unless looks decide how large it is."""
    question = found.question
    if len(question.compared) > 1 and not question.looks:
        budget = detectable(question, len(question.compared), found)
        # What is not known of single searches is a finding about the search.
        if budget.deviation is not None or budget.unit != "single search":
            yield budget_finding(budget, question, found.would_have_shown(found.pairs))


def budget_finding(budget: Detectable, question: Question, seen: tuple[float, float] | None = None) -> Finding:
    """Say which differences a budget can show, and from what that follows.

    `seen` is what its pairs would have shown.
    """
    unit = "run" if budget.unit == "run" else "search"
    given = f"{counted(budget.units, unit)} of each of {counted(budget.methods, 'method')}"
    if budget.deviation is None:
        more = "" if budget.units > 1 else f"; 3 {plural(unit)} of each would say"
        text = f"Which differences {given} can show is not known."
        return Finding("limit", text, "comparison", f"It depends on how far {plural(unit)} of this kind vary{more}.")
    smallest = None if (budget.smallest or 0.0) >= question.largest else budget.smallest
    text, detail = f"{capitalized(given)} can show no difference.", []
    if smallest is not None:
        text = f"Differences below {span(seen or (smallest,))} points can stay unseen."
        show, power = verb(budget.units, "show"), power_words(question.compare)
        detail.append(f"{given} {show} larger ones in {question.score_name} with a probability of {power}.")
    if budget.one_more is not None and budget.one_more < (smallest or question.largest):
        detail.append(f"One {unit} more of each would show {100 * budget.one_more:.1f} points.")
    needed = f"more than {MOST_UNITS:,} {plural(unit)}" if budget.needed is None else counted(budget.needed, unit)
    detail.append(f"A difference of {100 * budget.wanted:g} points takes {needed} of each.")
    known = {"all": "all pairs", "best": "each method with the best"}
    compared = question.methods.get(question.compare)  # A plan can ask for a method that has no score yet.
    asked = known.get(question.compare) or f"each with {compared.title if compared else question.compare}"
    source = f" in {budget.source}" if budget.source else ", as given"
    doubled = ", doubled for one search each" if budget.unit == "single search" and budget.source else ""
    detail.append(
        f"This follows from a deviation of {100 * budget.deviation:.2f} points between {plural(unit)}{source}{doubled}"
        f", for tests of {asked}."
    )
    return Finding("limit", text, "comparison", " ".join(detail))


def of_constants(found: Answer) -> Iterator[Finding]:
    """Name the methods of one run that stands for all."""
    if constant := [planned.title for planned in found.question.methods.values() if planned.constant]:
        text = f"{listed(constant)}: one run, because every further run would be equal."
        yield Finding("note", text, "comparison", "The tests take its value without an error of its own.")


def of_single_searches(found: Answer) -> Iterator[Finding]:
    """Say what one search of each method can show."""
    searched = any(planned.searched for planned in found.question.methods.values())
    if found.question.unit == "single search" and searched:
        yield Finding("limit", "One search of each method.", "search", _single_search(found))


def _single_search(found: Answer) -> str:
    assumed = found.question.assumed
    if assumed is None or not found.compared:
        return (
            "How far searches of this kind vary is not known, so only the settings found are compared, not the "
            "methods. 3 searches of each would say."
        )
    if assumed.given:
        return f"The tests take {assumed.words} as the deviation between searches; they hold as far as it does."
    typical = 100 * 2**0.5 * assumed.deviation
    return (
        f"Searches of this size have differed by about {typical:.1f} points ({assumed.record}: {assumed.setting}). "
        "The tests of methods assume twice as much; the intervals are about the settings found."
    )


def of_failed(found: Answer) -> Iterator[Finding]:
    """Name the searches or runs that failed, which are set aside."""
    detail = (
        "Nothing crashed. Such a search is set aside: means, intervals and tests are about a search that does not "
        "fail. More trials or a narrower range make failures rarer, and more searches tell how rare."
    )
    if (unit := _unit(found)) == "run":
        detail = "Such a run is set aside: means, intervals and tests are about the others."
    for key, failed in found.failed.items():
        own, reached = found.values[key], listed([percent(value) for value in sorted(failed)])
        low = f"{verb(len(failed), 'lie')} far below the others"
        text = f"{found.titles[key]}: {len(failed)} of {counted(own.count, unit)} "
        text += f"{low if unit == 'run' else 'found no good setting'} ({reached}; the others {span(own.units)})."
        yield Finding("limit", text, "search", detail)


def of_means(found: Answer) -> Iterator[Finding]:
    """Name the pairs whose order failures turn, with both differences."""
    named = [
        f"{found.titles[pair.a]} over {found.titles[pair.b]} ({percent(pair.difference, form='+.1f')}; "
        f"{found.with_failed_words(pair)})"
        for pair in found.without_agreement
    ]
    if named:
        text = f"No verdict about {joined(first_of(named, NAMED))}."
        detail = f"A typical {_unit(found)} of the first is better, and its mean over all of them is worse."
        yield Finding("limit", text, "comparison", detail)


def of_marks(found: Answer) -> Iterator[Finding]:
    """Name the claims that lean on few searches which happened to agree."""
    marked, record = found.may_not_recur, record_for_marks(found)
    if marked and record:
        claims = [pair for pair in found.pairs if pair.better or pair.size == "within"]
        named = [f"{found.titles[pair.better or pair.a]} over {found.titles[pair.worse or pair.b]}" for pair in marked]
        text = f"Another {in_letters(found.question.units)} searches may not show {len(marked)} of "
        text += f"{counted(len(claims), 'claim')}: {joined(first_of(named, NAMED))}."
        detail = (
            f"Few searches can happen to agree. If they varied by {100 * record.deviation:.2f} points as in "
            f"{record.record} ({record.setting}), {'it' if len(marked) == 1 else 'they'} would be gone."
        )
        yield Finding("limit", text, "comparison", detail)


def of_fragile(found: Answer) -> Iterator[Finding]:
    """Name the claims that hang on a method that they are not about."""
    fragile = fragile_claims(found)
    named = [
        f"{found.titles[better]} over {found.titles[worse]} without {' or '.join(found.titles[key] for key in without)}"
        for (better, worse), without in fragile.items()
    ]
    if named:
        text = f"Fragile: {len(named)} of {counted(len(found.claims), 'claim')} would be gone without another method."
        yield Finding("warning", text, "comparison", f"{capitalized('; '.join(first_of(named, NAMED)))}.")


def of_settings(found: Answer) -> Iterator[Finding]:
    """Say how much searches may vary before claims about given settings would say nothing about methods."""
    claims = [pair for pair in found.pairs if pair.better and pair.break_even is not None]
    text = "Runs of given settings are compared: the answer is about these settings, not about the methods."
    if found.question.unit == "run" and not claims and not found.measured and found.pairs:
        yield Finding("limit", text, "comparison", "Another search could find other settings.")
    if found.question.unit != "run" or not claims:
        return
    weakest = min(claims, key=lambda pair: pair.break_even or 0.0)
    better, worse = (found.titles[key or ""] for key in (weakest.better, weakest.worse))
    room = f"by more than {100 * weakest.break_even:.2g} points" if weakest.break_even else "at all"
    detail = (
        f"{better} is {percent(abs(weakest.difference), weakest.half_width)} above {worse}; this would be gone if "
        f"searches of the two varied {room}."
    )
    yield Finding("limit", text, "comparison", f"{detail}{in_records(found)}")


def in_records(found: Answer) -> str:
    """Say by how much searches vary in the kept records; nothing beside a score that is no percentage."""
    if found.question.scale == "points":
        return ""
    return f" In the kept records they vary by {kept_range(found.question.score, found.question.embeddings)}."


def of_looks(found: Answer) -> Iterator[Finding]:
    """Say how many searches the answer took, at which level, and how many a fixed plan would take."""
    question, level = found.question, found.look_level
    if level is None:
        return
    planned = f"looks were planned after {listed([str(look) for look in question.looks])}"
    searches = counted(question.units, "search")
    outcome = "Decided" if found.decided else "Not decided"
    detail = (
        f"A verdict of this look has a level of {100 * level:.1f} %. Over all looks the level is "
        f"{100 * question.alpha:g} %, whatever ends the run."
    )
    claimed = [abs(pair.difference) for pair in found.pairs if pair.better]
    between = search_deviation(found.searches)
    if claimed and between is not None and between.deviation > 0:
        fixed = units_for(len(question.compared), min(claimed) / between.deviation, question.compare)
        needed = "more searches of each than can be asked for"
        if fixed is not None:
            needed = f"{counted(fixed, 'search')} of each"
        detail += (
            f" A fixed plan that shows the smallest of these differences, {100 * min(claimed):.1f} points, with a "
            f"probability of {power_words(question.compare)} takes {needed}."
        )
    yield Finding("note", f"{outcome} after {searches} of each method; {planned}.", "search", detail)


def findings_of_scores(found: Answer, missing: Mapping[str, list[int]] | None = None) -> Iterator[Finding]:
    """Say what a reader of scores without an experiment must know; `missing` are rows without a score, by method."""
    yield from caveats(found)
    yield from _needed(found)
    yield from _single(found)
    yield from _left_out(found, missing or {})
    for kind in (_unequal, _equal, _rounded):
        yield from kind(found)


def unit_sentence(found: Answer) -> str:
    """Say what the answer is about: methods, or the settings that the runs are of."""
    if found.question.unit == "search":
        counts = [own.count for own in found.values.values()]
        return f"Methods are compared by the means of their searches, {span(counts, 'd', 1)} of each."
    return " ".join(one.sentences for one in (*of_settings(found), *of_single_searches(found)))


def _unit(found: Answer) -> str:
    return "run" if found.question.unit == "run" else "search"


def _needed(found: Answer) -> Iterator[Finding]:
    """The searches or runs that would show the open differences, of the pairs with the highest means."""
    methods, pairs = len(found.question.compared), [pair for pair in found.shown_pairs if pair.untested is None]
    open_ones = [pair for pair in pairs if not (pair.better or pair.size == "within" or pair.means_disagree)]
    open_ones = [pair for pair in open_ones if pair.difference]
    if len(open_ones) > NAMED:
        open_ones.sort(key=lambda pair: -abs(pair.difference))
    budget = detectable(found.question, methods, found) if open_ones else None
    if budget is None or not budget.deviation:
        return
    parts = []
    for pair in open_ones[:NAMED]:
        # A pair that varies more than the others sees less.
        wider = max(1.0, pair.smallest / budget.smallest) if pair.smallest and budget.smallest else 1.0
        needed = units_for(methods, abs(pair.difference) / (wider * budget.deviation), found.question.compare)
        takes = f"more than {MOST_UNITS:,}" if needed is None else f"{needed:,}"
        parts.append(f"{_ahead(found, pair)} takes {takes}")
    left = len(open_ones) - NAMED
    more = f"; {counted(left, 'more pair')} {verb(left, 'are')} open" if left > 0 else ""
    text = f"{plural(_unit(found)).capitalize()} of each that would show a difference of the size seen here: "
    detail = f"With a probability of {power_words(found.question.compare)}, if the true difference is as large."
    yield Finding("note", f"{text}{joined(parts)}{more}.", "comparison", detail)


def _ahead(found: Answer, pair: Pair) -> str:
    pair = pair if pair.difference >= 0 else pair.turned()
    return f"{found.titles[pair.a]} over {found.titles[pair.b]} ({percent(pair.difference)})"


def _single(found: Answer) -> Iterator[Finding]:
    """Name methods of one run or search, and the deviation that would give a verdict about them."""
    assumed = found.question.assumed
    names = [found.titles[key] for key in found.compared if len(found.values[key].units) == 1]
    if not names or (assumed is not None and assumed.given):
        return
    unit = "search" if found.question.unit == "search" else "run"
    text = f"One {unit} each, so there is no verdict about {few(names, most=8)}."
    detail = f"Three {plural(unit)} of each would give one."
    limits = _largest_deviations(found) if found.question.unit != "search" else {}
    if limits:
        largest = max(limits, key=lambda pair: limits[pair])
        named = dict.fromkeys([next(iter(limits)), largest])
        cases = joined([f"{_ahead(found, pair)} below {_down(limits[pair])} points" for pair in named])
        detail = (
            f"If you know by how much searches of one method vary (their standard deviation), --assume-deviation gives "
            f"verdicts: {cases}, as with --assume-deviation {_down(limits[largest])}. {detail}{in_records(found)}"
        )
    yield Finding("limit", text, "comparison", detail)


def _largest_deviations(found: Answer) -> dict[Pair, float]:
    """In points, how much searches may vary for a claim about two single runs; without pairs that can have none."""
    level = SHARE_OF_BETTER * found.question.alpha / family(found.question.compare, len(found.question.compared))
    rounding = np.array(found.question.step / np.sqrt(6))  # The error of a difference of two rounded scores.
    limits = {
        pair: 100 * float(break_even(np.array(pair.difference), rounding, np.array(MOST_DEGREES), level))
        for pair in found.shown_pairs
        if len(found.values[pair.a].units) == len(found.values[pair.b].units) == 1
    }
    return {pair: limit for pair, limit in limits.items() if limit > 0}


def _down(number: float) -> str:
    """Two digits of a number, rounded down."""
    step = 10.0 ** (np.floor(np.log10(number)) - 1) if number > 0 else 1.0
    return f"{np.floor(number / step * (1 + 1e-12)) * step:.4g}"


def _left_out(found: Answer, missing: Mapping[str, list[int]]) -> Iterator[Finding]:
    for key, rows in missing.items():
        shown = f"{things(len(rows), 'row')} {some([str(row) for row in rows], NAMED)}"
        text = f"{found.titles.get(key, key)}: {counted(len(rows), 'run')} without a score, left out ({shown})."
        yield Finding("warning", text, "data", "If they failed, the mean of the others is too high.")


def _unequal(found: Answer) -> Iterator[Finding]:
    counts = {found.titles[key]: found.values[key].count for key in found.compared}
    if len(set(counts.values())) > 1:
        named = [f"{title} {count}" for title, count in counts.items()]
        spread = joined(named) if len(named) <= 8 else f"{min(counts.values())} to {max(counts.values())}"
        text = f"Unequal numbers of {plural(_unit(found))}: {spread}."
        yield Finding("note", text, "data", "Tests and intervals count them.")


def _equal(found: Answer) -> Iterator[Finding]:
    """Name scores that are equal too often to be measured: a copied row, or a seed without effect."""
    seen: dict[tuple[float, ...], list[str]] = {}
    for key in found.compared:
        values = [value for own in found.runs[key].values() for value in own]
        seen.setdefault(tuple(values), []).append(found.titles[key])
        ((_, most),) = Counter(values).most_common(1)
        if most > 2 and 2 * most > len(values) and found.question.step < COARSE:
            text = f"{found.titles[key]}: {most} of {counted(len(values), 'run')} {verb(most, 'have')} the same score."
            yield Finding("warning", text, "data", "A copied row, or a seed without effect, counts as no new run.")
    for scores, titles in seen.items():
        if len(scores) > 1 and len(titles) > 1:
            text = f"{listed(titles)} have the same {counted(len(scores), 'score')}."
            yield Finding("warning", text, "data", "One may be a copy of the other.")


def _rounded(found: Answer) -> Iterator[Finding]:
    if (step := found.question.step) >= COARSE and not found.question.tested:
        text = f"The scores are rounded to {100 * step:g} {'point' if step == 0.01 else 'points'}."
        detail = "Nothing smaller can be seen, and no deviation is taken to be smaller than that of rounding."
        yield Finding("limit", text, "data", detail)
