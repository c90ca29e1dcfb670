"""Table of the differences between methods: every pair that was asked for, with the verdicts of the one comparison.

Where default settings were trained, each method's gain over its own follows.

Two things stand apart: which method is better, and whether the difference is beyond the margin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value
from results.answer.answers import Answer
from results.answer.compare import find_pair
from results.answer.intervals import Interval
from results.answer.pair_tests import power_words
from results.answer.question import Question
from results.answer.values import Pair
from results.wording import counted, counted_span, percent, span

_OF_TEST = (
    *("degrees", "p", "p_better", "p_beyond", "p_equal", "smallest", "break_even", "direction", "size", "untested"),
    "may_not_recur",
)
_HEADER = (
    *("a", "b", "metric", "variant", "unit", "difference", "low", "high", "difference_of_all", "over_classes"),
    *("units_a", "units_b", "runs_a", "runs_b"),
    *(*_OF_TEST, "settings_direction"),
)
DISTANCE = NumberFormat(digits=2, scale=100)
P_VALUE = NumberFormat(digits=3, smallest=0.001)


def differences(found: Answer) -> Table:
    """Build the table that compares pairs of methods on the asked score."""
    titles, title = found.titles, f"{found.question.title}: is the difference real?"
    if not found.pairs and not found.gains:
        return Table(title, "Fewer than two methods are compared.", (), (), Sheet(_HEADER, ()), first="Methods")
    shown = [one for one in found.findings if one.where in ("comparison", "origin") and one.level != "note"]
    asked = [asked_pairs(found)] if found.pairs else []
    asked += ["each method with its card's own setting"] if found.gains else []
    pairs = [(pair, find_pair(found.settings, pair.a, pair.b)) for pair in (*found.shown_pairs, *found.gains)]
    return Table(
        title=title,
        caption=f"{'Interim. ' if found.interim else ''}Differences of {found.question.score_name}, the primary score, "
        f"in percentage points: {' and '.join(asked)}, over {_UNITS[found.question.unit]}.",
        columns=_columns(found),
        rows=tuple(Row(f"{titles[pair.a]} − {titles[pair.b]}", _cells(found, pair, own)) for pair, own in pairs),
        own_sheet=Sheet(_HEADER, tuple(_values(found, pair, own) for pair, own in pairs)),
        first="Methods",
        notes=tuple(finding.sentences for finding in shown),
        remarks=tuple(_reading(found)),
    )


_UNITS = {
    "search": "means of complete searches",
    "run": "runs of the given settings",
    "single search": "runs of the settings that one search of each method found",
}


def asked_pairs(found: Answer) -> str:
    """Say which pairs are compared: `all pairs`, or `each method with A, which has the highest mean`."""
    if found.reference is None:
        return "all pairs"
    highest = ", which has the highest mean" if found.question.compare == "best" else ""
    return f"each method with {found.titles[found.reference]}{highest}"


def compared_words(found: Answer) -> str:
    """Write the same as the object of a sentence: `all pairs of methods`, or `each other method with A`."""
    if found.reference is None:
        return "the two methods" if len(found.question.compared) == 2 else "all pairs of methods"
    asked = asked_pairs(found).replace("each method", "each other method", 1)
    return f"{asked}," if "," in asked else asked


def exceptions(question: Question) -> str:
    """Say where wrong claims are more likely than the level says (docs/comparisons.md)."""
    unit = "runs" if question.unit == "run" else "searches"
    return (
        "In simulations it was higher where one method varied ten times as much as the others, had two modes, or "
        f"failed in two of five {unit}."
    )


def settings_words(pair: Pair, titles: Mapping[str, str]) -> str:
    """Write which of two settings is better: `A's setting better`, `cannot tell`, or why it was not tested."""
    return f"{titles[pair.better]}'s setting better" if pair.better else pair.untested or pair.direction


def size_words(pair: Pair, margin: float) -> str:
    """Write the size of a difference against the margin: `beyond 0.5`, `within 0.5`, `cannot tell`, or nothing."""
    if pair.untested or pair.p_equal is None:
        return ""
    return pair.size if pair.size == "cannot tell" else f"{pair.size} {100 * margin:g}"


def difference_words(pair: Pair, question: Question, form: str = "+z.2f") -> str:
    """Write the difference of a pair with its interval, such as `+2.00 ± 0.90`; without the sign by a form without it.

    The interval ends where differences of two scores end.
    """
    difference = pair.difference if "+" in form else abs(pair.difference)
    return percent(difference, pair.half_width, form, question.ends_of_differences)


def open_words(found: Answer, pair: Pair) -> str:
    """Say why none of two is called better, and which difference would have been."""
    if pair.untested is None and pair.means_disagree:
        return f"cannot tell; {found.with_failed_words(pair)}"
    # The interval is that of this pair alone.
    alone = pair.half_width is not None and abs(pair.difference) > pair.half_width
    family = found.gains if pair in found.gains else found.pairs
    corrected = f", corrected for {counted(len(family), 'comparison')}" if alone else ""
    return pair.untested or f"cannot tell{corrected}; {seen_words(found, [pair])}"


def wider_over_classes(pair: Pair) -> str:
    """Write the half width of a difference's interval over the test classes where this is the wider one."""
    width = pair.over_classes or 0.0
    return f" (over classes ± {100 * width:.1f})" if width > (pair.half_width or 0.0) else ""


def seen_words(found: Answer, pairs: Sequence[Pair]) -> str:
    """Say which difference would have shown where none did: the range over pairs."""
    seen, largest = found.would_have_shown(pairs), found.question.largest
    if seen is None:
        return "nothing was tested"
    if min(seen) < largest:
        some = ", in some pairs none" if max(seen) >= largest else ""
        return f"a difference of {span(seen if not some else seen[:1])} points would have shown{some}"
    sides = [side for pair in pairs for side in (pair.of_a, pair.of_b) if not side.planned.constant]
    unit = "run" if found.question.unit == "run" else "search"
    return f"no difference could have shown with {counted_span((len(side.units) for side in sides), unit)} of each"


def shown_cell(smallest: float | None, question: Question) -> Cell:
    """Return a cell with the smallest difference that would have shown; `none` if no two scores differ so much."""
    beyond = smallest is not None and smallest >= question.largest
    return Cell(smallest, form=DISTANCE, written="none" if beyond else "")


def _reading(found: Answer) -> list[str]:
    question = found.question
    sentences, margin, assumed = [], f"{100 * question.margin:g} points", question.assumed
    if assumed is not None:
        sentences.append(f"The deviation between searches is assumed to be {assumed.words}.")
    if found.tested or found.gains:
        in_search = "" if question.unit == "run" else " in a typical search, one that does not fail"
        sentences += [
            f"Verdict: which method is better{in_search}. Size: whether the difference is beyond {margin} or within. "
            f"The probability of any wrong claim in these two columns is at most {100 * question.alpha:g} %. "
            f"{exceptions(question)} p is adjusted for all these pairs.",
            "The 95 % intervals hold for one pair alone.",
        ]
        if _has_classes(found):
            sentences.append("± over classes: half its 95 % interval if other test classes were drawn.")
        sentences.append(
            "Would have shown: the smallest true difference that would be called better with a probability of "
            f"{power_words(question.compare)}, by the deviations found for the two; another experiment finds others."
        )
    if found.tested and question.unit == "run":
        sentences.append(
            "Break-even: these verdicts are about the given settings. One about the methods would be gone if their "
            "searches varied by more than this standard deviation."
        )
    if found.gains:
        sentences.append(
            "A method and its card's own setting: its searches, and runs of the setting. These tests are a family of "
            "their own, and say nothing about the margin."
        )
    if found.settings:
        sentences.append(
            "Settings found: which of the two settings is better by their runs, a family of tests of its own. It says "
            "nothing about the methods, whose next search would find other settings."
        )
    return sentences


def _columns(found: Answer) -> tuple[Column, ...]:
    counts = Column("searches" if found.question.unit == "search" else "runs")
    more = [counts]
    if found.tested or found.gains:
        more = [Column("size", numeric=False), Column("p (adjusted)"), counts, Column("would have shown")]
        more += [Column("break-even")] if found.question.unit == "run" else []
    of_classes = [Column("± over classes")] if _has_classes(found) else []
    columns = (Column("difference"), *of_classes, Column("verdict", numeric=False), *more)
    return (*columns, Column("settings found", numeric=False)) if found.settings else columns


def _has_classes(found: Answer) -> bool:
    return any(pair.over_classes is not None for pair in found.pairs)


def _cells(found: Answer, pair: Pair, settings: Pair | None) -> list[Cell]:
    titles = found.titles
    units_a, units_b = len(pair.of_a.units), len(pair.of_b.units)
    verdict = f"{titles[pair.better]} better" if pair.better else pair.untested or pair.direction
    if pair.untested is None and pair.means_disagree:
        verdict += f"; {found.with_failed_words(pair)}"
    count = Cell(units_a, written="" if units_a == units_b else f"{units_a}, {units_b}")
    question = found.question
    form = replace(POINTS, ends=question.ends_of_differences)
    cells = [Cell(pair.difference, pair.half_width, form=form, kind="measured")]
    cells += [Cell(pair.over_classes, form=DISTANCE)] if _has_classes(found) else []
    cells += [Cell(f"{verdict}{found.mark_words(pair)}")]
    if found.tested or found.gains:
        cells += [Cell(size_words(pair, question.margin)), Cell(pair.p_better, form=P_VALUE)]
        cells += [count, shown_cell(pair.smallest, question)]
        if question.unit == "run":
            cells.append(Cell(pair.break_even if pair.better else None, form=DISTANCE))
    else:
        cells.append(count)
    if settings is not None:
        cells.append(Cell(settings_words(settings, titles)))
    return cells


def _values(found: Answer, pair: Pair, settings: Pair | None) -> tuple[Value, ...]:
    question = found.question
    interval = Interval(pair.difference, pair.half_width, len(pair.of_a.units))
    named = (pair.a, pair.b, question.score, question.embeddings, question.unit)
    ends = (interval.mean, interval.low, interval.high, pair.difference_of_all, pair.over_classes)
    counts = (len(pair.of_a.units), len(pair.of_b.units), pair.of_a.runs, pair.of_b.runs)
    of_test = (getattr(pair, name) for name in _OF_TEST)
    return (*named, *ends, *counts, *of_test, settings.direction if settings else None)
