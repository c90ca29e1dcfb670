"""Findings about a table of scores that nobody planned: what it takes to tell, and what in it does not hold."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from results.answer.caveats import caveats, in_records, of_settings, of_single_searches
from results.answer.finding import Finding
from results.answer.pair_tests import MOST_DEGREES, SHARE_OF_BETTER, break_even, family, power_words
from results.answer.planning import MOST_UNITS, detectable, units_for
from results.answer.values import Answer, Pair
from results.wording import counted, joined, listed, plural

NAMED = 3
"""Largest number of pairs and rows that are named. More are counted."""

COARSE = 0.001
"""A score that is rounded to a tenth of a point or more is named."""


def findings_of_scores(found: Answer, missing: Mapping[str, list[int]] | None = None) -> Iterator[Finding]:
    """Say what a reader of scores without an experiment must know; `missing` are rows without a score, by method."""
    yield from caveats(found)
    yield from _needed(found)
    yield from _single(found)
    yield from _left_out(found, missing or {})
    yield from _unequal(found)
    yield from _equal(found)
    yield from _rounded(found)


def unit_sentence(found: Answer) -> str:
    """Say what the answer is about: methods, or the settings that the runs are of."""
    if found.question.unit == "search":
        counts = [own.count for own in found.values.values()]
        searches = " to ".join(dict.fromkeys(map(str, (min(counts), max(counts)))))
        return f"Methods are compared by the means of their searches, {searches} of each."
    return " ".join(one.sentences for one in (*of_settings(found), *of_single_searches(found)))


def _unit(found: Answer) -> str:
    return "run" if found.question.unit == "run" else "search"


def _needed(found: Answer) -> Iterator[Finding]:
    """The searches or runs that would show the open differences, of the pairs with the highest means."""
    methods, pairs = len(found.question.compared), [pair for pair in found.shown_pairs if pair.untested is None]
    open_ones = [pair for pair in pairs if not pair.better and pair.size != "within" and pair.difference]
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
    more = f"; {len(open_ones) - NAMED:,} more pairs are open" if len(open_ones) > NAMED else ""
    text = f"{plural(_unit(found)).capitalize()} of each that would show a difference of the size seen here: "
    detail = f"With a probability of {power_words(found.question.compare)}, if the true difference is as large."
    yield Finding("note", f"{text}{joined(parts)}{more}.", "comparison", detail)


def _ahead(found: Answer, pair: Pair) -> str:
    pair = pair if pair.difference >= 0 else pair.turned()
    return f"{found.titles[pair.a]} over {found.titles[pair.b]} ({100 * pair.difference:.1f})"


def _single(found: Answer) -> Iterator[Finding]:
    """Name methods of one run or search, and the deviation that would give a verdict about them."""
    assumed = found.question.assumed
    names = [found.titles[key] for key in found.compared if len(found.values[key].units) == 1]
    if not names or (assumed is not None and assumed.given):
        return
    unit = "search" if found.question.unit == "search" else "run"
    whom = listed(names) if len(names) <= 8 else f"{len(names)} methods"
    text = f"One {unit} each, so there is no verdict about {whom}."
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
        shown = f"{'row' if len(rows) == 1 else 'rows'} {', '.join(map(str, rows[:NAMED]))}"
        more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
        text = f"{found.titles.get(key, key)}: {counted(len(rows), 'run')} without a score, left out ({shown}{more})."
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
            text = f"{found.titles[key]}: {most} of {len(values)} runs have the same score."
            yield Finding("warning", text, "data", "A copied row, or a seed without effect, counts as no new run.")
    for scores, titles in seen.items():
        if len(scores) > 1 and len(titles) > 1:
            text = f"{listed(titles)} have the same {len(scores)} scores."
            yield Finding("warning", text, "data", "One may be a copy of the other.")


def _rounded(found: Answer) -> Iterator[Finding]:
    if (step := found.question.step) >= COARSE and not found.question.tested:
        text = f"The scores are rounded to {100 * step:g} {'point' if step == 0.01 else 'points'}."
        detail = "Nothing smaller can be seen, and no deviation is taken to be smaller than that of rounding."
        yield Finding("limit", text, "data", detail)
