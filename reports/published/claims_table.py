"""Table of claims with their answers from print and from runs, and a sentence for every comparison that answers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import get_args

from reports.published.claim_answers import AnsweredClaim, ExperimentAnswer
from reports.tables.differences import DISTANCE, P_VALUE, size_words
from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Table
from results.published.claims import Claim
from results.published.print_alone import PrintVerdict, print_answer
from results.wording import counted, listed, plural

_CAPTION = (
    "A claim says that the first method is better. Claimed: the printed difference in percentage points. Noise: two "
    "equal methods with these numbers of runs differ by more in 5 % of cases. It is from the ± of the two values, else "
    "from the ± that papers print for the same dataset and score. The chance of the search is no part of a ±, so "
    "beyond noise is about the printed settings; it is gone if searches vary by more than the deviation beside it, in "
    "points. Runs: what the runs in the store show. Each claim is judged by "
    "itself; nothing is corrected for the number of claims."
)
_CAPTION_OF_RUNS = (
    "The verdict is that of the experiment's one comparison on this score, corrected for all pairs that it compares; "
    "on another score than its primary one at a fifth of the level. Size: the difference against the experiment's "
    "margin. Ours: the difference with its own 95 % interval, which is not corrected. Claimed size: excluded if this "
    "interval does not hold it. Holds, contradicted: the conditions are the claim's. Seen here too, the other way "
    "here, not seen here: they are other ones, and say nothing about those of the claim. Not seen here: the two are "
    "within the margin, of which more was claimed. Could have seen: the smallest true difference that would be called "
    "better with a probability of 80 %."
)
_OF_CLAIM = ("dataset", "score", "claimed", "noise", "print alone", "gone at", "runs")
_OF_RUNS = ("size", "ours", "claimed size", "p", "could have seen", "n", "experiment")
_NUMBERS = {"claimed", "noise", "gone at", "ours", "p", "could have seen", "n"}


def claims_table(answered: Sequence[AnsweredClaim], title: str) -> Table:
    """Build the table of claims.

    Returns:
        One row per claim; columns about runs only if there are any.
    """
    with_runs = any(one.runs for one in answered)
    names = (*_OF_CLAIM, *(_OF_RUNS if with_runs else ()))
    return Table(
        title=title,
        caption=" ".join((_CAPTION, *([_CAPTION_OF_RUNS] if with_runs else []))),
        columns=tuple(Column(name, numeric=name in _NUMBERS) for name in names),
        rows=tuple(replace(row, cells=row.cells[: len(names)]) for row in map(_row, answered)),
        first="Claim",
        notes=(_summary(answered), *dict.fromkeys(note for one in answered for note in _notes(one))),
        remarks=tuple(_remarks(answered)),
    )


def _head(one: AnsweredClaim) -> str:
    claim = one.claim
    origin = ", ".join(part for part in (claim.source, claim.place) if part)
    pair = f"{claim.a} > {claim.b}"
    return f"{origin}: {pair}" if origin else pair


def _row(one: AnsweredClaim) -> Row:
    claim, printed = one.claim, one.printed
    cells = (
        Cell(claim.dataset),
        Cell(claim.score),
        Cell(claim.points, form=NumberFormat(digits=claim.digits, signed=True), kind="published"),
        Cell(printed.noise, form=NumberFormat(digits=2)),
        Cell(printed.verdict),
        Cell(printed.break_even, form=NumberFormat(digits=2)),
        Cell(one.verdict),
    )
    return Row(_head(one), (*cells, *_answer_cells(claim, one.runs)), sign="†" if one.quoted else "")


def _answer_cells(claim: Claim, answer: ExperimentAnswer | None) -> list[Cell]:
    """The cells about runs; nothing is said about the claimed size under other conditions."""
    if answer is None:
        return [Cell()] * len(_OF_RUNS)
    pair = answer.pair
    counts = [len(side.units) for side in (pair.of_a, pair.of_b)]
    return [
        Cell(pair.untested or size_words(pair, answer.answer.question.margin)),
        Cell(pair.difference, pair.half_width, form=POINTS, kind="measured"),
        Cell(pair.claimed_size(claim.points / 100) if answer.differences == () else None),
        Cell(pair.p_better, form=P_VALUE),
        Cell(pair.smallest, form=DISTANCE),
        Cell(counts[0], written=f"{', '.join(map(str, dict.fromkeys(counts)))} {plural(_unit(answer))}"),
        Cell(answer.experiment),
    ]


def _unit(answer: ExperimentAnswer) -> str:
    return "search" if answer.answer.question.unit == "search" else "run"


def _summary(answered: Sequence[AnsweredClaim]) -> str:
    others = [print_answer(one.claim, "standard deviation").verdict for one in answered]
    alone, other = (
        ", ".join(f"{found.count(verdict)} {verdict}" for verdict in get_args(PrintVerdict) if verdict in found)
        for found in ([one.printed.verdict for one in answered], others)
    )
    if other != alone:
        alone += f" (if a ± of unstated meaning is a deviation, {other})"
    here = [one.runs for one in answered if one.runs is not None]
    without = Counter(one.verdict for one in answered if one.runs is None)
    counts = [verdict_counts(here)] if here else []
    counts += [f"{counted(count, 'claim')} {verdict}" for verdict, count in sorted(without.items())]
    return f"{counted(len(answered), 'claim')}. Print alone: {alone}. Runs: {'; '.join(counts)}."


def verdict_counts(answers: Iterable[ExperimentAnswer]) -> str:
    """Count the verdicts of distinct comparisons: `10 claims answered by 8 comparisons: 2 hold, 6 cannot tell`."""
    claims = list(answers)
    distinct = dict.fromkeys((answer.verdict, answer.identity) for answer in claims)
    verdicts = Counter(verdict for verdict, _ in distinct)
    words = [f"{number} {'hold' if verdict == 'holds' else verdict}" for verdict, number in verdicts.most_common()]
    comparisons = counted(len({identity for _, identity in distinct}), "comparison")
    return f"{counted(len(claims), 'claim')} answered by {comparisons}: {', '.join(words)}"


def _notes(one: AnsweredClaim) -> Iterator[str]:
    """Say under which conditions the experiments were run, and what their verdicts rest on."""
    if one.not_compared:
        yield f"{_head(one)}: {listed(one.not_compared)} has runs of both, but no comparison in {one.claim.score}."
    if (answer := one.runs) is None:
        return
    if answer.answer.question.unit == "single search":
        assumed = answer.answer.question.assumed
        rests = f", whose deviation is taken as twice that in {assumed.record}" if assumed else ""
        yield f"{answer.experiment}: one search of each method{rests}."
    if answer.differences:
        claimed = f"than those of {one.claim.setting}" if one.claim.setting else "than the claim's"
        yield f"{answer.experiment}, other conditions {claimed}: {'; '.join(answer.differences)}."
    elif answer.differences is None:
        yield f"{answer.experiment} is {answer.setting}; the claim names no published table to compare it with."


def _remarks(answered: Sequence[AnsweredClaim]) -> list[str]:
    lines = list(dict.fromkeys(line for one in answered if (line := _origin(one))))
    if any(one.printed.noise for one in answered):
        lines.append(
            "A value without ± and without a stated number of runs counts as one run. A ± that does not state its "
            "meaning or its number of runs is read in the way that gives the most noise."
        )
    quotes = sorted({f"{method} from {source}" for one in answered for method, source in one.quoted.items()})
    if quotes:
        lines.append(
            "† The source of the claim did not measure both values under its own conditions. It quotes "
            f"{'; '.join(quotes)}."
        )
    return lines


def _origin(one: AnsweredClaim) -> str:
    """Say where a deviation is from; empty for the values' own ±."""
    claim, printed = one.claim, one.printed
    if printed.deviation is None or printed.own:
        return ""
    tables = listed(list(dict.fromkeys(spread.table for spread in printed.source)))
    deviation = f"s = {printed.deviation:.2f} points"
    return f"{len(printed.source)} printed ± for {claim.score} on {claim.dataset}: {deviation}, from {tables}."
