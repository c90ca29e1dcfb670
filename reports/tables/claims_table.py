"""Table of claims with their answers from print and from runs, and a sentence for every claim with runs."""

from collections import Counter
from collections.abc import Iterable, Sequence

from reports.published.claim_answers import AnsweredClaim, ExperimentAnswer
from reports.tables.differences import settings_words, size_words
from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value, cell_text
from reports.wording import counted, listed, p_value, plural
from results.published.claims_file import Claim
from results.statistics.comparison_result import ComparedPair
from results.statistics.method_comparison import ALPHA
from results.statistics.planning import MOST_UNITS
from results.statistics.print_alone import ClaimVerdict, PrintVerdict, RunsAnswer

_HEADER = (
    *("line", "source", "place", "a", "b", "dataset", "score", "setting", "claimed", "runs_a", "runs_b"),
    *("deviation", "degrees", "deviation_from", "noise", "print_alone", "runs_needed", "verdict"),
    *("experiment", "experiment_dataset", "experiment_verdict", "size", "claimed_size", "difference", "low", "high"),
    *("unit", "n_a", "n_b", "untested", "p_better", "smallest_detectable", "needed_there", "other_conditions"),
)
_PRINT_WORDS: dict[PrintVerdict, str] = {
    "within noise": "within noise",
    "beyond noise": "beyond noise",
    "no deviation known": "without a known deviation",
}
_VERDICTS: tuple[ClaimVerdict, ...] = ("holds", "contradicted", "cannot tell", "not compared", "not run")

_CAPTION = (
    "A claim says that the first method is better. Claimed: the printed difference in percentage points. Noise: two "
    "equal methods with these numbers of runs differ by more in 5 % of cases, by the deviation s of measured runs or, "
    "marked ±, by the printed ±. Runs needed: runs of each method that find a difference of the claimed size in 80 % "
    "of cases. Verdict of runs: whether the runs in the store show that the first method is better. Each claim is "
    "judged by itself; nothing is corrected for the number of claims."
)
_CAPTION_OF_RUNS = (
    "The verdict is that of the experiment's one comparison on this score, corrected for all pairs that it compares; "
    "on another score than its primary one at a fifth of the level. Size: the difference against the experiment's "
    "margin. Claimed size: whether the interval of the difference excludes it. Ours: the difference with its own 95 % "
    "interval, which is not corrected."
)


def claims_table(answered: Sequence[AnsweredClaim], title: str) -> Table:
    """Build the table of claims.

    Returns:
        One row per claim; columns about runs only if there are any. The sheet has one row per claim and answering
        experiment. Differences are percentage points, also in the sheet.
    """
    with_runs = any(_shown(one) for one in answered)
    names = ["dataset", "score", "claimed", "noise", "print alone", "runs needed", "verdict of runs"]
    names += ["size", "claimed size", "ours", "n", "experiment"] if with_runs else []
    columns = tuple(Column(name, numeric=name in ("claimed", "noise", "runs needed", "ours", "n")) for name in names)
    rows = [Row.single(_head(one), _cells(one, with_runs), sign="†" if one.quoted else "") for one in answered]
    return Table(
        title=title,
        caption=" ".join((_CAPTION, *([_CAPTION_OF_RUNS] if with_runs else []))),
        columns=columns,
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(line for one in answered for line in _sheet_lines(one))),
        first="Claim",
        notes=(_summary(answered), *dict.fromkeys(sentence for one in answered for sentence in _sentences(one))),
        remarks=tuple(_remarks(answered)),
    )


def noise_words(one: AnsweredClaim) -> str:
    """Return the verdict of print alone in words, such as `within noise of one run`.

    If the deviation was measured on another dataset, the words name it.
    """
    printed = one.printed
    if printed.verdict == "no deviation known":
        return printed.verdict
    if printed.runs_a != printed.runs_b:
        runs = f"{printed.runs_a}/{printed.runs_b} runs"
    else:
        runs = "one run" if printed.runs_a == 1 else f"{printed.runs_a} runs"
    where = f" on {printed.measured.dataset}" if printed.measured and _is_elsewhere(one) else ""
    return f"{printed.verdict} of {runs}{where}"


def difference_words(pair: ComparedPair) -> str:
    """Return a difference with half the width of its 95 % interval, in percentage points, such as `-0.25 ± 0.06`."""
    return cell_text(_difference(pair))


def _difference(pair: ComparedPair) -> Cell:
    return Cell(pair.difference, pair.half_width, form=POINTS, kind="measured")


def _is_elsewhere(one: AnsweredClaim) -> bool:
    return one.printed.measured is not None and one.printed.measured.dataset != one.claim.dataset


def _head(one: AnsweredClaim) -> str:
    claim = one.claim
    origin = ", ".join(part for part in (claim.source, claim.place) if part)
    pair = f"{claim.a.method} > {claim.b.method}"
    return f"{origin}: {pair}" if origin else pair


def _shown(one: AnsweredClaim) -> ExperimentAnswer | None:
    return one.runs or next(iter(one.elsewhere), None)


def _cells(one: AnsweredClaim, with_runs: bool) -> list[Cell]:
    claim, printed = one.claim, one.printed
    needed = _needed(printed.runs_needed) if printed.deviation else ""
    elsewhere = [f"{answer.dataset}: {answer.answer.verdict}" for answer in one.elsewhere]
    cells = [
        Cell(claim.dataset),
        Cell(claim.score),
        Cell(claim.difference, form=NumberFormat(digits=claim.digits, signed=True), kind="published"),
        Cell(printed.noise, note="±" if printed.noise and not printed.measured else "", form=NumberFormat(digits=2)),
        Cell(noise_words(one)),
        Cell(printed.runs_needed, written=needed),
        Cell("; ".join([_verdict_words(one), *elsewhere])),
    ]
    if not with_runs:
        return cells
    shown = _shown(one)
    if shown is None:
        return [*cells, Cell(), Cell(), Cell(kind="not run"), Cell(), Cell()]
    answer = shown.answer
    return [
        *cells,
        Cell(size_words(answer.pair, answer.comparison.margin)),
        Cell(answer.claimed or ""),
        _difference(answer.pair),
        Cell(min(answer.pair.units_a, answer.pair.units_b), written=_units(answer)),
        Cell(shown.experiment),
    ]


def _units(answer: RunsAnswer) -> str:
    """The searches or runs of both methods: `3 searches`, `3, 2 searches`, `one search, 3 runs`."""
    pair = answer.pair
    counts = dict.fromkeys((pair.units_a, pair.units_b))
    unit = "search" if answer.comparison.unit == "search" else "run"
    text = counted(pair.units_a, unit) if len(counts) == 1 else f"{', '.join(map(str, counts))} {plural(unit)}"
    return f"one search, {text}" if answer.comparison.unit == "single search" else text


def _verdict_words(one: AnsweredClaim) -> str:
    return f"{one.verdict} (other conditions)" if _has_other_conditions(one) else one.verdict


def _has_other_conditions(one: AnsweredClaim) -> bool:
    return one.runs is not None and bool(one.runs.differences)


def _needed(runs: int | None) -> str:
    return f"> {MOST_UNITS:,}" if runs is None else f"{runs:,}"


def _summary(answered: Sequence[AnsweredClaim]) -> str:
    prints = Counter(one.printed.verdict for one in answered)
    verdicts = Counter(one.verdict for one in answered)
    parts = [f"{prints[verdict]} {words}" for verdict, words in _PRINT_WORDS.items() if prints[verdict]]
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in _VERDICTS if verdicts[verdict])
    number = f"{len(answered)} claim{'s' if len(answered) > 1 else ''}"
    elsewhere = sum(_is_elsewhere(one) for one in answered)
    foreign = f" (for {elsewhere} the noise is that of another dataset)" if elsewhere else ""
    others = sum(_has_other_conditions(one) for one in answered)
    conditions = f" ({others} of the answers under other conditions than the claim's)" if others else ""
    return f"{number}. Print alone: {', '.join(parts)}{foreign}. Runs: {counts}{conditions}."


def _sentences(one: AnsweredClaim) -> Iterable[str]:
    claim = one.claim
    if one.runs is not None:
        claimed = f"claimed +{claim.difference:.{claim.digits}f} on {claim.dataset}, {claim.score}"
        conditions = _conditions(one.runs)
        yield f"{_head(one)} ({claimed}): {one.verdict}. {_evidence(one.runs)}{_size(one.runs, claim)}. {conditions}."
    elif one.not_compared:
        names = listed(one.not_compared)
        yield f"{_head(one)}: {names} has runs of both, but no comparison of these two in {claim.score}."
    for answer in one.elsewhere:
        pair = f"{claim.a.method} > {claim.b.method}, {claim.score}, on {answer.dataset} instead"
        yield f"{pair}: {answer.answer.verdict}. {_evidence(answer)}. The setting is {answer.setting}."


def _evidence(experiment: ExperimentAnswer) -> str:
    answer, pair, comparison = experiment.answer, experiment.answer.pair, experiment.answer.comparison
    difference = f"{experiment.experiment}, {_units(answer)} of each: {difference_words(pair)} points"
    if pair.p_better is None:
        text = f"{difference}; no verdict: {pair.untested}"
        settings = None if comparison.settings is None else comparison.settings.pair(pair.a, pair.b)
        return (
            text
            if settings is None
            else f"{text}. Settings found: {settings_words(settings, {pair.a: pair.a, pair.b: pair.b})}"
        )
    others = comparison.tested - 1
    corrected = f", corrected with {counted(others, 'other pair')} of the experiment" if others else ""
    level = f", tested at {100 * comparison.alpha:g} %" if comparison.alpha < ALPHA else ""
    assumed = f", with the deviation of searches in {comparison.assumed.record} doubled" if comparison.assumed else ""
    size = "" if pair.size == "cannot tell" else f". The difference is {size_words(pair, comparison.margin)} points"
    return f"{difference}, {p_value(pair.p_better)}{corrected}{level}{assumed}{size}"


def _size(experiment: ExperimentAnswer, claim: Claim) -> str:
    answer, pair = experiment.answer, experiment.answer.pair
    text, unit = "", "run" if answer.comparison.unit == "run" else "search"
    if answer.verdict == "cannot tell" and pair.smallest is not None:
        text = f". The smallest difference that could have been shown is {100 * pair.smallest:.1f} points"
        size = f"{claim.difference:.{claim.digits}f}"
        text += f"; one of {size} takes {_needed(answer.needed)} {plural(unit)} of each method"
    if answer.claimed == "excluded" and answer.verdict != "contradicted":
        than = "larger" if 100 * pair.difference > claim.difference else "smaller"
        text += f". The difference is {than} than claimed: its interval excludes the claimed size"
    return text


def _conditions(experiment: ExperimentAnswer) -> str:
    if experiment.differences is None:
        return f"The claim names no published table to compare conditions with; the runs are {experiment.setting}"
    if not experiment.differences:
        return "The conditions are those of the claim's table"
    return f"Under other conditions: {'; '.join(experiment.differences)}"


def _remarks(answered: Sequence[AnsweredClaim]) -> list[str]:
    sources: dict[str, dict[str, None]] = {}
    for one in answered:
        measured = one.printed.measured
        if measured is not None:
            text = (
                f"{100 * measured.deviation:.2f} points for {one.claim.score} ({measured.degrees} degrees of freedom)"
            )
            sources.setdefault(f"{measured.name} ({measured.setting})", {})[text] = None
    lines = [f"Measured deviation s: {', '.join(texts)}, from {source}." for source, texts in sources.items()]
    if sources:
        lines.append(
            "These are the nearest settings with repeated runs, not those of the claims, whose runs may vary more or "
            "less. Single runs of equal methods differ by more than 2.8 times their true deviation in 5 % of cases."
        )
    sides = [side for one in answered for side in (one.claim.a, one.claim.b)]
    if any(side.runs is None for side in sides):
        lines.append("A value without a stated number of runs counts as one run, or as two if it has a ±.")
    if any(side.plus_minus is not None and one.claim.spread == "not stated" for one in answered for side in sides):
        lines.append("A ± without a stated meaning is read as a standard error, which gives the most noise.")
    quotes = sorted({f"{method} from {source}" for one in answered for method, source in one.quoted.items()})
    if quotes:
        lines.append(
            "† The source of the claim did not measure both values under its own conditions. It quotes "
            f"{'; '.join(quotes)}."
        )
    return lines


def _sheet_lines(one: AnsweredClaim) -> list[tuple[Value, ...]]:
    claim, printed = one.claim, one.printed
    source = None if printed.deviation is None else printed.measured.name if printed.measured else "the printed ±"
    head: tuple[Value, ...] = (
        *(claim.line, claim.source, claim.place, claim.a.method, claim.b.method, claim.dataset, claim.score),
        *(claim.setting, claim.difference, printed.runs_a, printed.runs_b, printed.deviation, printed.degrees),
        *(source, printed.noise, printed.verdict, printed.runs_needed, one.verdict),
    )
    answers = [answer for answer in (one.runs, *one.elsewhere) if answer is not None]
    if not answers:
        return [(*head, *(None,) * (len(_HEADER) - len(head)))]
    return [(*head, *_experiment_values(answer)) for answer in answers]


def _experiment_values(experiment: ExperimentAnswer) -> tuple[Value, ...]:
    answer, pair = experiment.answer, experiment.answer.pair
    conditions = None if experiment.differences is None else "; ".join(experiment.differences) or "none"
    return (
        *(experiment.experiment, experiment.dataset, answer.verdict, pair.size, answer.claimed, 100 * pair.difference),
        *(_points(pair.low), _points(pair.high), answer.comparison.unit, pair.units_a, pair.units_b, pair.untested),
        *(pair.p_better, _points(pair.smallest), answer.needed, conditions),
    )


def _points(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction
