"""Table of claims with their answers from print and from runs, and a sentence for every claim with runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reports.published.claim_answers import AnsweredClaim, ExperimentAnswer
from reports.tables.differences import settings_words, size_words
from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value, cell_text
from reports.wording import counted, end_of_range, listed, p_value, plural
from results.published.claims_file import Claim
from results.published.spreads import FEWEST_RUNS, USUAL_RUNS
from results.statistics.comparison_result import ComparedPair
from results.statistics.measured_noise import MeasuredNoise
from results.statistics.method_comparison import ALPHA
from results.statistics.planning import MOST_UNITS
from results.statistics.print_alone import PrintAnswer, PrintNoise, PrintVerdict, RunsAnswer

_HEADER = (
    *("line", "source", "place", "a", "b", "dataset", "score", "setting", "claimed", "runs_a", "runs_b"),
    *("deviation_from", "print_alone", "verdict"),
    *(f"{name}_{end}" for end in ("least", "most") for name in ("deviation", "degrees", "noise", "runs_needed")),
    *("experiment", "experiment_dataset", "experiment_verdict", "size", "claimed_size", "difference", "low", "high"),
    *("unit", "n_a", "n_b", "untested", "p_better", "smallest_detectable", "needed_there", "other_conditions"),
    *("here", "range_ends"),
)
_PRINT_WORDS: dict[PrintVerdict, str] = {
    "within noise": "within noise",
    "within to beyond": "within to beyond",
    "beyond noise": "beyond noise",
    "no fitting deviation": "without a fitting deviation",
}

_CAPTION = (
    "A claim says that the first method is better. Claimed: the printed difference in percentage points. Noise: two "
    "equal methods with these numbers of runs differ by more in 5 % of cases. It is from the ± of the two values (own "
    "±), else from the ± that papers print for the same dataset and score, else from runs on the same whole dataset. "
    "Two numbers: a ± does not state its meaning or its runs; within to beyond: the verdict depends on what it means. "
    "The chance of the search is no part of a ±, so beyond noise is about the printed settings. Runs needed: runs of "
    "each method that find a difference of the claimed size in 80 % of cases. Verdict of runs: what the runs in the "
    "store show. Each claim is judged by itself; nothing is corrected for the number of claims."
)
_CAPTION_OF_RUNS = (
    "The verdict is that of the experiment's one comparison on this score, corrected for all pairs that it compares; "
    "on another score than its primary one at a fifth of the level. Size: the difference against the experiment's "
    "margin. Claimed size: whether the interval of the difference excludes it. Ours: the difference with its own 95 % "
    "interval, which is not corrected. Holds, contradicted: the conditions are the claim's. Seen here too, the other "
    "way here, not seen here: they are those in the column, and say nothing about those of the claim. Not seen here: "
    "the two are within the margin, of which more was claimed."
)


def claims_table(answered: Sequence[AnsweredClaim], title: str) -> Table:
    """Build the table of claims.

    Returns:
        One row per claim; columns about runs only if there are any. The sheet has one row per claim and answering
        experiment. Differences are percentage points, also in the sheet.
    """
    with_runs = any(_shown(one) for one in answered)
    names = ["dataset", "score", "claimed", "noise", "from", "print alone", "runs needed", "verdict of runs"]
    names += ["size", "claimed size", "ours", "n", "experiment", "conditions", "end of range"] if with_runs else []
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
    """Return the verdict of print alone in words, such as `within noise of one run`, without runs that are a guess."""
    printed, sides = one.printed, (one.claim.a, one.claim.b)
    if printed.least is None:
        return printed.verdict
    words = "within to beyond noise" if printed.verdict == "within to beyond" else printed.verdict
    if any(side.runs is None and side.plus_minus is not None for side in sides):
        return words
    a, b = printed.least.runs_a, printed.least.runs_b
    runs = f"{a}/{b} runs" if a != b else "one run" if a == 1 else f"{a} runs"
    return f"{words} of {runs}"


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


def _shown(one: AnsweredClaim) -> ExperimentAnswer | None:
    return one.runs or next(iter(one.elsewhere), None)


def _cells(one: AnsweredClaim, with_runs: bool) -> list[Cell]:
    claim, printed = one.claim, one.printed
    noises = printed.noises
    needed = [noise.runs_needed(claim.difference) for noise in noises]
    elsewhere = [f"{answer.dataset}: {answer.verdict}" for answer in one.elsewhere]
    cells = [
        Cell(claim.dataset),
        Cell(claim.score),
        Cell(claim.difference, form=NumberFormat(digits=claim.digits, signed=True), kind="published"),
        Cell(noises[0].noise if noises else None, written=_span([f"{noise.noise:.2f}" for noise in noises])),
        Cell(_source_words(printed)),
        Cell(noise_words(one)),
        Cell(needed[0] if needed else None, written=_span(list(map(_needed, needed)))),
        Cell("; ".join([one.verdict, *elsewhere])),
    ]
    if not with_runs:
        return cells
    shown = _shown(one)
    if shown is None:
        return [*cells, Cell(), Cell(), Cell(kind="not run"), *[Cell()] * 4]
    answer = shown.answer
    return [
        *cells,
        Cell(size_words(answer.pair, answer.comparison.margin)),
        Cell((one.runs and answer.claimed) or ""),
        _difference(answer.pair),
        Cell(min(answer.pair.units_a, answer.pair.units_b), written=_units(answer)),
        Cell(shown.experiment),
        Cell("the claim's" if shown.differences == () else shown.setting),
        Cell(range_words(shown)),
    ]


def range_words(experiment: ExperimentAnswer, titles: Mapping[str, str] | None = None) -> str:
    """Name the best values that lie at an end of their range: `nir_proxy_anchor: loss.omega 1 (highest)`."""
    ends: dict[str, list[str]] = {}
    for end in experiment.range_ends:
        ends.setdefault(titles[end.method] if titles else end.method, []).append(end_of_range(end))
    return "; ".join(f"{method}: {', '.join(own)}" for method, own in ends.items())


def _span(texts: list[str]) -> str:
    return " to ".join(dict.fromkeys(texts))


def _source_words(printed: PrintAnswer) -> str:
    """The source of a deviation in short: `own ±`, `26 printed ±`, or the name of a record."""
    if printed.source is None:
        return ""
    if isinstance(printed.source, MeasuredNoise):
        return printed.source.name
    return "own ±" if printed.own else f"{len(printed.source)} printed ±"


def _units(answer: RunsAnswer) -> str:
    """The searches or runs of both methods: `3 searches`, `3, 2 searches`, `one search, 3 runs`."""
    pair = answer.pair
    counts = dict.fromkeys((pair.units_a, pair.units_b))
    unit = "search" if answer.comparison.unit == "search" else "run"
    text = counted(pair.units_a, unit) if len(counts) == 1 else f"{', '.join(map(str, counts))} {plural(unit)}"
    return f"one search, {text}" if answer.comparison.unit == "single search" else text


def _needed(runs: int | None) -> str:
    return f"> {MOST_UNITS:,}" if runs is None else f"{runs:,}"


def _summary(answered: Sequence[AnsweredClaim]) -> str:
    prints = Counter(one.printed.verdict for one in answered)
    parts = [f"{prints[verdict]} {words}" for verdict, words in _PRINT_WORDS.items() if prints[verdict]]
    here = [one.runs for one in answered if one.runs is not None]
    elsewhere = [answer for one in answered for answer in one.elsewhere]
    without = Counter(one.verdict for one in answered if one.runs is None)
    counts = [verdict_counts(here)] if here else []
    counts += [f"{counted(without[verdict], 'claim')} {verdict}" for verdict in ("not compared", "not run")]
    counts += [f"on other datasets {verdict_counts(elsewhere)}"] if elsewhere else []
    runs = "; ".join(text for text in counts if not text.startswith("0 "))
    return f"{counted(len(answered), 'claim')}. Print alone: {', '.join(parts)}. Runs: {runs}."


def verdict_counts(answers: Iterable[ExperimentAnswer]) -> str:
    """Count the verdicts of distinct comparisons: `10 claims answered by 8 comparisons: 2 hold, 6 cannot tell`."""
    claims = list(answers)
    distinct = dict.fromkeys((answer.verdict, answer.comparison) for answer in claims)
    verdicts = Counter(verdict for verdict, _ in distinct)
    words = [f"{number} {'hold' if verdict == 'holds' else verdict}" for verdict, number in verdicts.most_common()]
    comparisons = counted(len({comparison for _, comparison in distinct}), "comparison")
    return f"{counted(len(claims), 'claim')} answered by {comparisons}: {', '.join(words)}"


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
        yield f"{pair}: {answer.verdict}. {_evidence(answer)}. The setting is {answer.setting}."


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
    if experiment.verdict == "cannot tell" and pair.smallest is not None:
        text = f". The smallest difference that could have been shown is {100 * pair.smallest:.1f} points"
        size = f"{claim.difference:.{claim.digits}f}"
        text += f"; one of {size} takes {_needed(answer.needed)} {plural(unit)} of each method"
    if answer.claimed == "excluded" and pair.better != pair.b:
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
    lines = list(dict.fromkeys(line for one in answered for line in _origin(one)))
    sides = [side for one in answered for side in (one.claim.a, one.claim.b)]
    if any(side.runs is None and side.plus_minus is None for side in sides):
        lines.append("A value without ± and without a stated number of runs counts as one run.")
    if any(len(one.printed.noises) > 1 for one in answered):
        lines.append(
            "A ± without a stated meaning is read as the standard deviation between runs and as the standard error of "
            f"their mean; without a stated number of runs, as one of {FEWEST_RUNS} and of {USUAL_RUNS} runs."
        )
    quotes = sorted({f"{method} from {source}" for one in answered for method, source in one.quoted.items()})
    if quotes:
        lines.append(
            "† The source of the claim did not measure both values under its own conditions. It quotes "
            f"{'; '.join(quotes)}."
        )
    return lines


def _origin(one: AnsweredClaim) -> Iterable[str]:
    """Say where a pooled or measured deviation is from."""
    claim, source = one.claim, one.printed.source
    if isinstance(source, MeasuredNoise):
        text = f"{100 * source.deviation:.2f} points for {claim.score}, {counted(source.degrees, 'degree')} of freedom"
        yield f"Measured deviation s: {text}, from {source.name} ({source.setting})."
    elif source and not one.printed.own:
        deviations = _span([f"{noise.deviation:.2f}" for noise in one.printed.noises])
        tables = listed(list(dict.fromkeys(spread.table for spread in source)))
        yield f"{len(source)} printed ± for {claim.score} on {claim.dataset}: s = {deviations} points, from {tables}."


def _sheet_lines(one: AnsweredClaim) -> list[tuple[Value, ...]]:
    claim, printed = one.claim, one.printed
    runs = (printed.least.runs_a, printed.least.runs_b) if printed.least else (None, None)
    head: tuple[Value, ...] = (
        *(claim.line, claim.source, claim.place, claim.a.method, claim.b.method, claim.dataset, claim.score),
        *(claim.setting, claim.difference, *runs),
        *(_source_words(printed) or None, printed.verdict, one.verdict),
        *_noise_values(printed.least, claim),
        *_noise_values(printed.most, claim),
    )
    answers = [answer for answer in (one.runs, *one.elsewhere) if answer is not None]
    if not answers:
        return [(*head, *(None,) * (len(_HEADER) - len(head)))]
    return [(*head, *_experiment_values(answer)) for answer in answers]


def _noise_values(noise: PrintNoise | None, claim: Claim) -> tuple[Value, ...]:
    if noise is None:
        return (None,) * 4
    return noise.deviation, noise.degrees, noise.noise, noise.runs_needed(claim.difference)


def _experiment_values(experiment: ExperimentAnswer) -> tuple[Value, ...]:
    answer, pair = experiment.answer, experiment.answer.pair
    conditions = None if experiment.differences is None else "; ".join(experiment.differences) or "none"
    return (
        *(experiment.experiment, experiment.dataset, experiment.verdict, pair.size, answer.claimed),
        100 * pair.difference,
        *(_points(pair.low), _points(pair.high), answer.comparison.unit, pair.units_a, pair.units_b, pair.untested),
        *(pair.p_better, _points(pair.smallest), answer.needed, conditions),
        experiment.setting,
        range_words(experiment) or None,
    )


def _points(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction
