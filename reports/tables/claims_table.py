"""Table of claims with their answers from print and from runs, and a sentence for every comparison that answers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from reports.published.claim_answers import AnsweredClaim, ExperimentAnswer
from reports.tables.differences import settings_words, size_words
from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value, cell_text
from results.statistics.comparison_result import ComparedPair
from results.statistics.measured_noise import MeasuredNoise
from results.statistics.method_comparison import ALPHA
from results.statistics.print_alone import PrintVerdict
from results.wording import counted, listed, p_value, plural

_HEADER = (
    *("line", "source", "place", "a", "b", "dataset", "score", "claimed", "noise", "print_alone", "verdict"),
    *("experiment", "experiment_dataset", "experiment_verdict", "difference", "low", "high", "p_better", "size"),
    "other_conditions",
)
_CAPTION = (
    "A claim says that the first method is better. Claimed: the printed difference in percentage points. Noise: two "
    "equal methods with these numbers of runs differ by more in 5 % of cases. It is from the ± of the two values, else "
    "from the ± that papers print for the same dataset and score, else from runs on the same whole dataset. The chance "
    "of the search is no part of a ±, so beyond noise is about the printed settings. Runs: what the runs in the store "
    "show. Each claim is judged by itself; nothing is corrected for the number of claims."
)
_CAPTION_OF_RUNS = (
    "The verdict is that of the experiment's one comparison on this score, corrected for all pairs that it compares; "
    "on another score than its primary one at a fifth of the level. Size: the difference against the experiment's "
    "margin. Ours: the difference with its own 95 % interval, which is not corrected. Holds, contradicted: the "
    "conditions are the claim's. Seen here too, the other way here, not seen here: they are those in the column, and "
    "say nothing about those of the claim. Not seen here: the two are within the margin, of which more was claimed."
)


def claims_table(answered: Sequence[AnsweredClaim], title: str) -> Table:
    """Build the table of claims.

    Returns:
        One row per claim; columns about runs only if there are any. The sheet has one row per claim and answering
        experiment. Differences are percentage points, also in the sheet.
    """
    with_runs = any(_answers(one) for one in answered)
    names = ["dataset", "score", "claimed", "noise", "print alone", "runs"]
    names += ["size", "ours", "experiment", "conditions"] if with_runs else []
    rows = [Row.single(_head(one), _cells(one)[: len(names)], sign="†" if one.quoted else "") for one in answered]
    sentences = [*(_sentence(one) for one in answered if one.runs or one.not_compared), *_elsewhere(answered)]
    return Table(
        title=title,
        caption=" ".join((_CAPTION, *([_CAPTION_OF_RUNS] if with_runs else []))),
        columns=tuple(Column(name, numeric=name in ("claimed", "noise", "ours")) for name in names),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(line for one in answered for line in _sheet_lines(one))),
        first="Claim",
        notes=(_summary(answered), *dict.fromkeys(sentences)),
        remarks=tuple(_remarks(answered)),
    )


def difference_words(pair: ComparedPair) -> str:
    """Return a difference with half the width of its 95 % interval, in percentage points, such as `-0.25 ± 0.06`."""
    return cell_text(_difference(pair))


def _difference(pair: ComparedPair) -> Cell:
    return Cell(pair.difference, pair.half_width, form=POINTS, kind="measured")


def _head(one: AnsweredClaim) -> str:
    claim = one.claim
    origin = ", ".join(part for part in (claim.source, claim.place) if part)
    pair = f"{claim.a.method} > {claim.b.method}"
    return f"{origin}: {pair}" if origin else pair


def _answers(one: AnsweredClaim) -> list[ExperimentAnswer]:
    return [answer for answer in (one.runs, *one.elsewhere) if answer is not None]


def _cells(one: AnsweredClaim) -> list[Cell]:
    claim, printed, shown = one.claim, one.printed, next(iter(_answers(one)), None)
    elsewhere = [f"{answer.dataset}: {answer.verdict}" for answer in one.elsewhere]
    cells = [
        Cell(claim.dataset),
        Cell(claim.score),
        Cell(claim.difference, form=NumberFormat(digits=claim.digits, signed=True), kind="published"),
        Cell(printed.noise.noise if printed.noise else None, form=NumberFormat(digits=2)),
        Cell(printed.verdict),
        Cell("; ".join([one.verdict, *elsewhere])),
    ]
    if shown is None:
        return [*cells, Cell(), Cell(), Cell(), Cell()]
    return [
        *cells,
        Cell(size_words(shown.pair, shown.comparison.margin)),
        _difference(shown.pair),
        Cell(shown.experiment),
        Cell("the claim's" if shown.differences == () else shown.setting),
    ]


def _units(answer: ExperimentAnswer) -> str:
    """The searches or runs of both methods: `3 searches`, `3, 2 searches`, `one search, 3 runs`."""
    pair, unit = answer.pair, "search" if answer.comparison.unit == "search" else "run"
    counts = dict.fromkeys((pair.units_a, pair.units_b))
    text = counted(pair.units_a, unit) if len(counts) == 1 else f"{', '.join(map(str, counts))} {plural(unit)}"
    return f"one search, {text}" if answer.comparison.unit == "single search" else text


def _summary(answered: Sequence[AnsweredClaim]) -> str:
    prints = Counter(one.printed.verdict for one in answered)
    parts = [f"{prints[verdict]} {verdict}" for verdict in get_args(PrintVerdict) if prints[verdict]]
    here = [one.runs for one in answered if one.runs is not None]
    elsewhere = [answer for one in answered for answer in one.elsewhere]
    without = Counter(one.verdict for one in answered if one.runs is None)
    counts = [verdict_counts(here)] if here else []
    counts += [f"{counted(count, 'claim')} {verdict}" for verdict, count in sorted(without.items())]
    counts += [f"on other datasets {verdict_counts(elsewhere)}"] if elsewhere else []
    return f"{counted(len(answered), 'claim')}. Print alone: {', '.join(parts)}. Runs: {'; '.join(counts)}."


def verdict_counts(answers: Iterable[ExperimentAnswer]) -> str:
    """Count the verdicts of distinct comparisons: `10 claims answered by 8 comparisons: 2 hold, 6 cannot tell`."""
    claims = list(answers)
    distinct = dict.fromkeys((answer.verdict, answer.identity) for answer in claims)
    verdicts = Counter(verdict for verdict, _ in distinct)
    words = [f"{number} {'hold' if verdict == 'holds' else verdict}" for verdict, number in verdicts.most_common()]
    comparisons = counted(len({identity for _, identity in distinct}), "comparison")
    return f"{counted(len(claims), 'claim')} answered by {comparisons}: {', '.join(words)}"


def _sentence(one: AnsweredClaim) -> str:
    """Say what runs on the claim's dataset show, by which numbers, and under which conditions."""
    claim, runs = one.claim, one.runs
    if runs is None:
        return f"{_head(one)}: {listed(one.not_compared)} has runs of both, but no comparison in {claim.score}."
    text = (
        f"{_head(one)} (claimed +{claim.difference:.{claim.digits}f} on {claim.dataset}, {claim.score}): {one.verdict}"
    )
    text += f". {_evidence(runs)}"
    if runs.excludes(claim) and runs.pair.better != runs.pair.b:
        than = "larger" if 100 * runs.pair.difference > claim.difference else "smaller"
        text += f". The difference is {than} than claimed: its interval excludes the claimed size"
    return f"{text}. {_conditions(runs)}."


def _elsewhere(answered: Sequence[AnsweredClaim]) -> Iterator[str]:
    for one in answered:
        for answer in one.elsewhere:
            pair = f"{one.claim.a.method} > {one.claim.b.method}, {one.claim.score}, on {answer.dataset} instead"
            yield f"{pair}: {answer.verdict}. {_evidence(answer)}. The setting is {answer.setting}."


def _evidence(answer: ExperimentAnswer) -> str:
    pair, comparison = answer.pair, answer.comparison
    difference = f"{answer.experiment}, {_units(answer)} of each: {difference_words(pair)} points"
    if pair.p_better is None:
        settings = None if comparison.settings is None else comparison.settings.pair(pair.a, pair.b)
        names = {pair.a: pair.a, pair.b: pair.b}
        found = "" if settings is None else f". Settings found: {settings_words(settings, names)}"
        return f"{difference}; no verdict: {pair.untested}{found}"
    others = comparison.tested - 1
    text = f"{difference}, {p_value(pair.p_better)}"
    text += f", corrected with {counted(others, 'other pair')} of the experiment" if others else ""
    text += f", tested at {100 * comparison.alpha:g} %" if comparison.alpha < ALPHA else ""
    text += f", with the deviation of searches in {comparison.assumed.record} doubled" if comparison.assumed else ""
    text += "" if pair.size == "cannot tell" else f". The difference is {size_words(pair, comparison.margin)} points"
    if answer.verdict == "cannot tell" and pair.smallest is not None:
        text += f". The smallest difference that could have been shown is {100 * pair.smallest:.1f} points"
    return text


def _conditions(answer: ExperimentAnswer) -> str:
    ends = [f"{end.method}: {end.target} {end.value:g} ({end.end})" for end in answer.range_ends]
    further = f". At an end of its range, so that a wider one could change this: {'; '.join(ends)}" if ends else ""
    if answer.differences is None:
        return f"The claim names no published table to compare conditions with; the runs are {answer.setting}{further}"
    if not answer.differences:
        return f"The conditions are those of the claim's table{further}"
    return f"Under other conditions: {'; '.join(answer.differences)}{further}"


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
    claim, source, noise = one.claim, one.printed.source, one.printed.noise
    if source is None or noise is None or one.printed.own:
        return ""
    if isinstance(source, MeasuredNoise):
        text = f"{noise.deviation:.2f} points for {claim.score}, {counted(source.degrees, 'degree')} of freedom"
        return f"Measured deviation s: {text}, from {source.name} ({source.setting})."
    tables = listed(list(dict.fromkeys(spread.table for spread in source)))
    deviation = f"s = {noise.deviation:.2f} points"
    return f"{len(source)} printed ± for {claim.score} on {claim.dataset}: {deviation}, from {tables}."


def _sheet_lines(one: AnsweredClaim) -> list[tuple[Value, ...]]:
    claim, printed = one.claim, one.printed
    noise = printed.noise.noise if printed.noise else None
    head: tuple[Value, ...] = (
        *(claim.line, claim.source, claim.place, claim.a.method, claim.b.method, claim.dataset, claim.score),
        *(claim.difference, noise, printed.verdict, one.verdict),
    )
    lines: list[tuple[Value, ...]] = []
    for answer in _answers(one):
        pair = answer.pair
        differences = None if answer.differences is None else "; ".join(answer.differences) or "none"
        points = [None if value is None else 100 * value for value in (pair.difference, pair.low, pair.high)]
        about = (answer.experiment, answer.dataset, answer.verdict)
        lines.append((*head, *about, *points, pair.p_better, pair.size, differences))
    return lines or [(*head, *(None,) * (len(_HEADER) - len(head)))]
