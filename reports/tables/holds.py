"""The table "Does it hold?": a verdict under one other condition at a time, and the same in a sentence."""

from collections.abc import Iterator, Mapping, Sequence

from reports.tables.differences import difference_cell, limited_words
from reports.tables.table import Cell, Column, Row, Sheet, Table, Value
from results.answer.answers import Answer
from results.answer.values import Pair
from results.findings.holds import (
    AS_ASKED,
    Check,
    OtherConditions,
    counted_pairs,
    first_pairs,
    leader,
    pairs_with_verdict,
)
from results.wording import capitalized, counted, listed, verb

_HEADER = ("a", "b", "condition", "difference", "low", "high", "verdict", "holds", "note", "measure")
_HOLDS = {True: "yes", False: "no", None: "not measured"}


def holds_table(found: Answer, *, every: bool = False) -> Table:
    """Build the table for the pairs of the headline, or for every pair that was tested."""
    conditions, rows, values = OtherConditions(found), list[Row](), list[tuple[Value, ...]]()
    pairs = found.shown_pairs if every else first_pairs(found)
    for checks in filter(None, map(conditions.of, pairs)):
        pair = checks[0].pair
        assert pair  # The first is the pair as it was asked.
        rows.append(Row(found.of_two(pair), _cells(checks[0])))
        rows += [Row(check.condition, _cells(check), below=True) for check in checks[1:]]
        values += [_values(pair, check) for check in checks]
    some = not every and 0 < len(pairs) < len(pairs_with_verdict(found))
    shown = f": the first pairs of {found.titles[leader(found)]}" if some else ""
    return Table(
        title=f"{found.question.title}: does it hold?",
        caption=f"The verdict on {found.question.score_name}, and the same under one other condition at a time{shown}.",
        columns=(
            *(Column(found.scaling.gap_name), Column("verdict", numeric=False), Column("holds", numeric=False)),
            Column("what decides it", numeric=False),
        ),
        rows=tuple(rows),
        own_sheet=Sheet(_HEADER, tuple(values)),
        first="Methods",
        in_latex=(found.scaling.gap_name, "verdict", "holds"),
        notes=tuple(limited_words(found)),
        remarks=(
            "Each condition has tests of its own at the level of the first. Holds: the verdict is the same there. "
            "In brackets: the option of a run that measures it.",
        )
        if rows
        else (),
    )


def what_stands(found: Answer) -> str:
    """Say under which conditions the verdicts hold, under which not, and which were not measured."""
    pairs, every = counted_pairs(found), pairs_with_verdict(found)
    words = stands_words(OtherConditions(found), pairs)
    if not words or len(pairs) == len(every):
        return words
    of = f"{len(pairs)} of {counted(len(every), 'verdict')}"
    return f"Only {of} {verb(len(pairs), 'were')} asked again, the first of {found.titles[leader(found)]}. {words}"


def stands_words(conditions: OtherConditions, pairs: Sequence[Pair]) -> str:
    """Write the same of the verdicts of these pairs; empty if they have none."""
    by_condition = dict[str, list[Check]]()
    verdicts = [pair for pair in pairs if pair.verdict]
    for pair in verdicts:
        for check in conditions.of(pair)[1:]:
            by_condition.setdefault(check.condition, []).append(check)
    if not by_condition:
        return ""
    if len(verdicts) > 1:
        return f"{counted(len(verdicts), 'verdict')}: {'; '.join(_counts(by_condition))}."
    return f"{capitalized('; '.join(_parts({key: own for key, (own,) in by_condition.items()})))}."


def _parts(checks: Mapping[str, Check]) -> Iterator[str]:
    """The conditions of one verdict."""
    yes, no = ([key for key, one in checks.items() if one.holds is holds] for holds in (True, False))
    if yes:
        yield f"this holds {listed(yes)}"
    if no:
        yield ", ".join(f"not {one}" for one in no) if yes else f"this does not hold {listed(no)}"
    if unknown := [_unknown(key, one) for key, one in checks.items() if one.holds is None]:
        yield f"not measured: {listed(unknown)}"


def _counts(by_condition: Mapping[str, Sequence[Check]]) -> Iterator[str]:
    """How many of several verdicts hold under each condition that applies to them."""
    every = [key for key, own in by_condition.items() if all(one.holds for one in own)]
    if every:
        yield f"all hold {listed(every)}"
    unknown = [key for key, own in by_condition.items() if all(one.holds is None for one in own)]
    for key, own in by_condition.items():
        if key not in (*every, *unknown):
            left = sum(one.holds is None for one in own)
            missing = f" ({left} not measured)" if left else ""
            yield f"{key} {sum(bool(one.holds) for one in own)} of {len(own)}{missing}"
    if unknown:
        yield f"not measured: {listed(unknown)}"


def _unknown(condition: str, check: Check) -> str:
    """A condition that was not measured, with what is known of it, if no option measures it."""
    return f"{condition} ({check.note})" if check.note and not check.measure else condition


def _cells(check: Check) -> list[Cell]:
    there = check.pair
    decides = " ".join(filter(None, (check.note, f"({check.measure})" if check.measure else "")))
    if there is None:
        return [Cell(), Cell(), Cell(_HOLDS[check.holds]), Cell(decides)]
    as_asked = check.condition == AS_ASKED
    ahead = f"{check.answer.titles[there.ahead]} ahead" if there.ahead else ""
    return [
        difference_cell(check.answer, there),
        Cell(ahead or check.answer.verdict_words(there)),
        Cell("" if as_asked else _HOLDS[check.holds]),
        Cell(decides),
    ]


def _values(pair: Pair, check: Check) -> tuple[Value, ...]:
    there, numbers = check.pair, tuple[Value, ...]((None, None, None, None))
    if there:
        ends = map(check.answer.scaling.in_file, (there.difference, *(there.interval or (None, None))))
        numbers = (*ends, check.answer.verdict_words(there))
    return (pair.a, pair.b, check.condition, *numbers, check.holds, check.note, check.measure)
