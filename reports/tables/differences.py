"""Table of the differences between methods: every pair that was asked for, with the verdicts of the one comparison.

Where default settings were trained, each method's gain over its own follows.

Two things stand apart: which method is better, and whether the difference is beyond the margin.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from reports.tables.table import Cell, Column, Row, Sheet, Table, Value
from reports.tables.tests_in_words import adjustment_words, variance_words
from results.answer.answers import Answer
from results.answer.compare import find_pair, plain_test
from results.answer.pair_tests import power_words
from results.answer.question import Question
from results.answer.values import Pair
from results.numbers import NumberFormat
from results.wording import counted, counted_span, joined, listed

_OF_TEST = (
    *("degrees", "p", "p_better", "p_beyond", "p_equal", "smallest", "break_even", "direction", "size", "untested"),
    *("ahead", "extent"),
)
_HEADER = (
    *("a", "b", "metric", "variant", "unit", "difference", "low", "high", "difference_of_all", "over_classes"),
    *("units_a", "units_b", "runs_a", "runs_b"),
    *(*_OF_TEST, "settings_direction"),
)
P_VALUE = NumberFormat(digits=3, smallest=0.001)


def differences(found: Answer) -> Table:
    """Build the table that compares pairs of methods on the asked score."""
    title = f"{found.question.title}: is the difference real?"
    if not found.shown_pairs and not found.gains:
        return Table(title, "Fewer than two methods are compared.", (), (), Sheet(_header(found), ()), first="Methods")
    shown = [one for one in found.findings if one.where in ("comparison", "origin") and one.level != "note"]
    asked = [asked_pairs(found)] if found.shown_pairs else []
    asked += ["each method with its card's own setting"] if found.gains else []
    pairs = [(pair, find_pair(found.settings, pair.a, pair.b)) for pair in (*found.shown_pairs, *found.gains)]
    columns, plain = _columns(found), _has_plain(found)
    primary = ", the primary score" if found.question.experiment else ""
    return Table(
        title=title,
        caption=f"{'Interim. ' if found.interim else ''}Differences of {found.question.score_name}{primary}, "
        f"{_in_unit(found.question)}: {' and '.join(asked)}, over {found.sample.over}.",
        columns=tuple(column for column, _ in columns),
        rows=tuple(Row(found.of_two(pair), [cell(pair) for _, cell in columns]) for pair, _ in pairs),
        own_sheet=Sheet(_header(found), tuple(_values(found, pair, own, plain=plain) for pair, own in pairs)),
        first="Methods",
        in_latex=(found.scaling.gap_name, "verdict"),
        notes=(*limited_words(found), *(finding.sentences for finding in shown)),
        remarks=tuple(_reading(found)),
    )


def _header(found: Answer) -> tuple[str, ...]:
    plain = ("plain_test", "plain_p") if _has_plain(found) else ()
    return (*_HEADER, *plain, *(() if found.sample.counted else ("fewest",)))


def _has_plain(found: Answer) -> bool:
    """Whether the textbook's test of each pair stands beside ours: for tables of others, whose readers know it."""
    return found.question.experiment is None and any(plain_test(found.question, pair) for pair in found.shown_pairs)


def _in_unit(question: Question) -> str:
    unit = question.scaling.gaps_in
    return f"{unit}, lower is better" if question.lower_is_better else unit


def asked_pairs(found: Answer) -> str:
    """Say which pairs are compared: `all pairs`, or `each method with A, which has the highest mean`.

    Of some methods alone it says that the tests are those of all.
    """
    if found.reference is None and found.only:
        methods, every = counted(len(found.question.compared), "method"), counted(len(found.pairs), "pair")
        shown = f"{counted(len(found.shown_pairs), 'pair')} of {len(found.compared)} of {methods}"
        return f"{shown}, tested among all {every}"
    if found.reference is None:
        return "all pairs"
    highest = f", which has the {found.best_words}" if found.question.compare == "best" else ""
    return f"each method with {found.titles[found.reference]}{highest}"


def compared_words(found: Answer) -> str:
    """Write the same as the object of a sentence: `all pairs of methods`, or `each other method with A`."""
    if len(found.question.compared) == 2:
        return "the two methods"
    if found.reference is None:
        return "all pairs of methods"
    asked = asked_pairs(found).replace("each method", "each other method", 1)
    return f"{asked}," if "," in asked else asked


def settings_words(pair: Pair, titles: Mapping[str, str]) -> str:
    """Write which of two settings is better: `A's setting better`, `cannot tell`, or why it was not tested.

    If the worse one's trainings were cut off: `A's setting ahead after 400 steps`.
    """
    if pair.ahead:
        return f"{titles[pair.ahead]}'s setting ahead {pair.extent}"
    return f"{titles[pair.better]}'s setting better" if pair.better else pair.untested or pair.direction


def size_words(pair: Pair, question: Question) -> str:
    """Write the size of a difference against the margin: `beyond 0.5`, `within 0.5`, `cannot tell`, or nothing."""
    if pair.untested or pair.ahead or pair.p_equal is None:
        return ""
    margin = "" if question.bound is None else question.scaling.short_gap(question.bound, unit=False)
    return pair.size if pair.size == "cannot tell" else f"{pair.size} {margin}"


def open_words(found: Answer, pair: Pair) -> str:
    """Say why none of two is called better, and which difference would have been."""
    if pair.untested is None and pair.means_disagree:
        return f"cannot tell; {found.with_failed_words(pair)}"
    if pair.ahead:
        return f"{found.ahead_words(pair)}: no verdict about methods"
    # The interval is that of this pair alone.
    alone = pair.interval is not None and not pair.interval[0] <= 0 <= pair.interval[1]
    family = found.gains if pair in found.gains else found.pairs
    of_family = counted(len(family), "comparison")
    if family is found.pairs and found.question.compare == "best":
        of_family = f"the choice of the best of {len(found.question.compared)}"
    corrected = f", corrected for {of_family}" if alone else ""
    seen = seen_words(found, [pair])
    return found.untested_words(pair) or f"cannot tell{corrected}{f'; {seen}' if seen else ''}"


def seen_words(found: Answer, pairs: Sequence[Pair]) -> str:
    """Say which difference would have shown where none did: the range over pairs."""
    seen, scaling = found.would_have_shown(pairs), found.scaling
    if seen is None:
        return "" if any(pair.p is not None for pair in pairs) else "nothing was tested"
    if not scaling.is_beyond(min(seen)):
        some = ", in some pairs none" if scaling.is_beyond(max(seen)) else ""
        return f"a difference of {scaling.gap_words(*(seen if not some else seen[:1]))} would have shown{some}"
    sides = [side for pair in pairs for side in (pair.of_a, pair.of_b) if not side.planned.constant]
    counts = counted_span((side.n for side in sides), found.sample.word)
    return f"no difference could have shown with {counts}{found.sample.each}"


def shown_cell(smallest: float | None, question: Question) -> Cell:
    """Return a cell with the smallest difference that would have shown; `none` if no two scores differ so much."""
    beyond = smallest is not None and question.scaling.is_beyond(smallest)
    return Cell(smallest, form=question.scaling.gap_format(more=True), written="none" if beyond else "")


_OVER_CLASSES = "± over classes: half its 95 % interval if other test classes were drawn."


def _would_have_shown(question: Question) -> str:
    return (
        "Would have shown: the smallest true difference that would be called better with a probability of "
        f"{power_words(question.compare)}, by the deviations found for the two; another experiment finds others."
    )


def _plain_words(found: Answer) -> str:
    """Say which test the plain p values are of."""
    tests = dict.fromkeys(one[0] for pair in found.shown_pairs if (one := plain_test(found.question, pair)))
    aside = ", also of those set aside" if found.failed else ""
    return f"p (plain): {joined([*tests])} of each pair alone{aside}, without pooling and without correction."


def limited_words(found: Answer) -> list[str]:
    """Say what `ahead` means, where a pair is."""
    extents = list(dict.fromkeys(pair.extent for pair in found.limited))
    return [f"Ahead: better only {listed(extents)}, which is no verdict about methods."] if extents else []


def _reading(found: Answer) -> list[str]:
    question = found.question
    sentences, margin = [], question.margin_words
    if assumed := question.assumed_words:
        sentences.append(f"The deviation between searches is assumed to be {assumed}.")
    if found.tested or found.gains:
        searched = found.sample.about == "methods"
        in_search = " in a typical search, one that does not fail" if searched else ""
        size = f" Size: whether the difference is beyond {margin} or within." if _has_size(found) else ""
        adjusted = adjustment_words(question) or "that of the pair alone"
        sentences += [
            f"Verdict: which method is better{in_search}.{size} "
            f"The probability of any wrong claim in {'these two columns' if size else 'this column'} is meant to be at "
            f"most {100 * question.alpha:g} %{found.sample.may_err}.",
            *([f"p: {'; '.join(filter(None, [adjusted, variance_words(found)]))}."] if found.tested else []),
            *([_plain_words(found)] if _has_plain(found) else []),
            "The 95 % intervals hold for one pair alone.",
        ]
        if _has_classes(found):
            sentences.append(_OVER_CLASSES)
    if _has_smallest(found):
        sentences.append(_would_have_shown(question))
    if found.gains:
        sentences.append(
            "A method and its card's own setting: its searches, and runs of the setting. These tests are a family of "
            "their own, adjusted by Holm's method alone, and say nothing about the margin."
        )
    if found.settings:
        sentences.append(
            "Settings found: which of the two settings is better by their runs, a family of tests of its own. It says "
            "nothing about the methods, whose next search would find other settings."
        )
    return sentences


def _columns(found: Answer) -> list[tuple[Column, Callable[[Pair], Cell]]]:
    """The columns of what this answer has, each with the function that makes its cell of a pair."""
    question, tested, plain = found.question, bool(found.tested or found.gains), _has_plain(found)
    distance, of_plain = found.scaling.gap_format(more=True), _plain_words(found) if plain else ""
    columns: list[tuple[bool, Column, Callable[[Pair], Cell]]] = [
        (True, Column(found.scaling.gap_name), partial(difference_cell, found)),
        (
            _has_classes(found),
            Column("± over classes", meaning=_OVER_CLASSES),
            lambda pair: Cell(pair.over_classes, form=distance),
        ),
        (True, Column("verdict", numeric=False), lambda pair: Cell(_verdict(found, pair))),
        (tested and _has_size(found), Column("size", numeric=False), lambda pair: Cell(size_words(pair, question))),
        (tested, Column("p (adjusted)"), lambda pair: Cell(pair.p_better, form=P_VALUE)),
        (tested and plain, Column("p (plain)", meaning=of_plain), partial(_plain_p, found)),
        (tested or found.sample.counted, Column(found.sample.values), _count),
        (
            tested and _has_smallest(found),
            Column("would have shown", meaning=_would_have_shown(question)),
            lambda pair: shown_cell(pair.smallest, question),
        ),
        (bool(found.settings), Column("settings found", numeric=False), partial(_settings_found, found)),
    ]
    return [(column, cell) for is_there, column, cell in columns if is_there]


def difference_cell(found: Answer, pair: Pair) -> Cell:
    """Return a cell with the difference of a pair and its interval."""
    form = found.scaling.gap_format(more=True, signed=True)
    written = found.difference_words(pair, more=True, signed=True) if pair.ends else ""
    return Cell(pair.difference, pair.half_width, form=form, kind="measured", written=written)


def _verdict(found: Answer, pair: Pair) -> str:
    if pair.ahead:
        verdict = f"{found.titles[pair.ahead]} ahead"
    else:
        verdict = f"{found.titles[pair.better]} better" if pair.better else found.untested_words(pair) or pair.direction
    failed = f"; {found.with_failed_words(pair)}" if pair.untested is None and pair.means_disagree else ""
    return f"{verdict}{failed}"


def _plain_p(found: Answer, pair: Pair) -> Cell:
    plain = plain_test(found.question, pair)
    return Cell(plain[1] if plain else None, form=P_VALUE)


def _count(pair: Pair) -> Cell:
    n_a, n_b = pair.of_a.n, pair.of_b.n
    return Cell(n_a, written="" if n_a == n_b else f"{n_a}, {n_b}")


def _settings_found(found: Answer, pair: Pair) -> Cell:
    settings = find_pair(found.settings, pair.a, pair.b)
    return Cell(settings_words(settings, found.titles) if settings else None)


def _has_size(found: Answer) -> bool:
    """Whether differences are compared with a margin."""
    return found.question.bound is not None and found.sample.test != "ranks"


def _has_smallest(found: Answer) -> bool:
    return any(pair.smallest is not None for pair in (*found.shown_pairs, *found.gains))


def _has_classes(found: Answer) -> bool:
    return any(pair.over_classes is not None for pair in found.shown_pairs)


def _values(found: Answer, pair: Pair, settings: Pair | None, *, plain: bool) -> tuple[Value, ...]:
    question = found.question
    low, high = pair.interval or (None, None)
    named = (pair.a, pair.b, question.score, question.embeddings, question.unit)
    ends = map(found.scaling.in_file, (pair.difference, low, high, pair.difference_of_all, pair.over_classes))
    counts: tuple[Value, ...] = (pair.of_a.n, pair.of_b.n, pair.of_a.runs, pair.of_b.runs)
    counts, fewest = (counts, ()) if found.sample.counted else ((None,) * 4, (pair.fewest,))
    gaps = {name: found.scaling.in_file(getattr(pair, name)) for name in ("smallest", "break_even")}
    of_test = (gaps.get(name, getattr(pair, name)) for name in _OF_TEST)
    of_plain = (plain_test(question, pair) or (None, None)) if plain else ()
    return (*named, *ends, *counts, *of_test, settings.direction if settings else None, *of_plain, *fewest)
