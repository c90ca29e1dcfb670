"""Table of an experiment's results: one row per method, means over searches or runs with their intervals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reports.tables.differences import asked_pairs
from reports.tables.table import (
    PERCENT,
    Cell,
    Column,
    NumberFormat,
    Row,
    Sheet,
    Table,
    Value,
    format_of,
    half_width_text,
    measured_cell,
)
from results.answer.answer_question import intervals_on
from results.answer.answers import Answer
from results.answer.intervals import Interval
from results.answer.question import Question
from results.findings.experiment import readings_of
from results.records.frame import EMBEDDING_KINDS, EmbeddingKind
from results.records.records import RunRecord
from results.spec.component import SourceName
from results.spec.mlrc_constants import HEADLINE_METRICS, is_in_percent
from results.spec.plan import LeftOut
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, counted_span, joined, place_words, score_form, span

ResultColumn = tuple[EmbeddingKind, str]
"""Kind of embeddings, and metric."""

RESULT_COLUMNS: tuple[ResultColumn, ...] = tuple(
    (kind, metric) for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS
)
"""The columns of results in the order of the table. The number of runs is in a column before them."""

_HEADER = (
    *("method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n", "unit", "runs"),
    *("rank_low", "rank_high"),
)
_TITLES = {
    **HEADLINE_METRICS,
    "map@1000": "mAP@1000",
    "nmi": "NMI",
    "spectral_decay": "spectral decay",
    "class_concentration_variance": "concentration variance",
    "total_training_steps": "steps",
}
_STAR = "* A training diverged, skipped steps, made equal embeddings or did not beat the untrained network."
_AS_COMPUTED = NumberFormat(digits=4, significant=True)
_MOST_SEARCHES = 100
"""Largest number of searches whose single values are listed."""


class _Scores(NamedTuple):
    """A column of scores: its variant and metric in the sheet, its heading, its intervals by method, its format."""

    variant: str
    metric: str
    column: Column
    intervals: Mapping[str, Interval]
    form: NumberFormat = PERCENT


def metric_title(name: str) -> str:
    """Return a short title of a metric of the suite, such as `R@2` for `recall@2`."""
    return _TITLES.get(name, name.replace("recall@", "R@"))


def table_of(found: Answer) -> Table:
    """Build the table of results: percentages with the half width of the 95 % interval.

    A method without runs has no row; a note names it. Only values of the primary score are bold. If runs have scores
    after the last epoch or of further metrics, the last columns show them. The sheet has one row per cell, with
    fractions of 1.
    """
    measured, titles, findings = found.measured, found.titles, found.findings
    further = _further_titles(measured.records if measured else ())
    scores = list(_scores(found, further))
    ranks = found.final_ranks
    last_epoch = any(one.variant == "last_epoch" for one in scores)
    rows: list[Row] = []
    left_out: dict[LeftOut, list[str]] = {}
    values: list[tuple[Value, ...]] = []
    for key, planned in found.question.methods.items():
        own = measured.runs.get(key, []) if measured else []
        if not own and key not in found.intervals:
            continue
        usual = not own or own[0].dimensions == found.of_experiment.dimensions
        suffix = "" if usual else f" ({own[0].dimensions}-dim)"
        reason = planned.left_out
        flagged = "*" if any(run.events for run in own) else ""
        cells = [_score_cell(found, one, key, own) for one in scores]
        sign = reason.sign if reason else ""
        rows.append(Row(titles[key] + suffix, (_count(found, key), *cells), key, sign + flagged))
        if reason:
            left_out.setdefault(reason, []).append(rows[-1].head)
        values += _values(found, key, own, scores, ranks.get(key, (None, None)))
    count = "searches × runs" if found.question.unit == "search" else "n"
    return Table(
        title=found.question.title,
        caption=_caption(found),
        columns=(Column(count), *(one.column for one in scores)),
        rows=tuple(rows),
        own_sheet=Sheet(_HEADER, tuple(values)),
        notes=(
            *(f"{reason.sign} {joined(heads)}: {reason.note}" for reason, heads in left_out.items()),
            *(finding.sentences for finding in findings if finding.level != "note"),
            *([_STAR] if any("*" in row.sign for row in rows) else []),
            *_not_printed(found, rows),
            *_single_searches(found),
        ),
        remarks=(
            *_reading(found, last_epoch=last_epoch),
            *_about_further(further),
            *(finding.sentences for finding in findings if finding.level == "note"),
        ),
    )


def _scores(found: Answer, further: Mapping[str, str]) -> Iterator[_Scores]:
    """The columns of an experiment: headline scores, those after the last epoch, further ones; else all of the frame.

    Further ones are `recall@2`, `nmi` and the like, and functions of the user.
    """
    question = found.question
    there = dict.fromkeys(zip(found.frame["embeddings"], found.frame["metric"], strict=True))
    last = (("last_epoch", metric) for metric in HEADLINE_METRICS)
    names = [*RESULT_COLUMNS, *last, *((kind, name) for kind in EMBEDDING_KINDS for name in further)]
    for kind, metric in names if found.measured else there:
        if (kind, metric) not in there and (kind, metric) not in RESULT_COLUMNS:
            continue
        intervals, title = intervals_on(found, metric, kind), further.get(metric, metric_title(metric))
        group = f"further, {kind}" if metric in further else kind.replace("_", " ")
        form = PERCENT if metric not in further or is_in_percent(metric) else _AS_COMPUTED
        if (kind, metric) == (question.embeddings, question.score):
            form = format_of(question)
        yield _Scores(kind, title if SourceName.parse(metric) else metric, Column(title, group), intervals, form)


def _further_titles(records: Sequence[RunRecord]) -> dict[str, str]:
    """Short titles of the further metrics by name: of a user's metric its function, with the file if two are alike."""
    names = list(dict.fromkeys(name for record in records for name in record.metrics_separated))
    short = {name: parsed.attribute if (parsed := SourceName.parse(name)) else metric_title(name) for name in names}
    alike = [title for title in short.values() if list(short.values()).count(title) > 1]
    return {name: name if title in alike and SourceName.parse(name) else title for name, title in short.items()}


def _about_further(titles: Mapping[str, str]) -> Iterator[str]:
    as_computed = [title for name, title in titles.items() if not is_in_percent(name)]
    if as_computed:
        yield f"Not percentages: {', '.join(as_computed)}."
    own = [f"{title} is {name}" for name, title in titles.items() if SourceName.parse(name)]
    if own:
        yield f"Metrics of the user: {'; '.join(own)}."


def _score_cell(found: Answer, scores: _Scores, key: str, own: Sequence[RunRecord]) -> Cell:
    """A mean with its interval; in the column of the primary score with the method's rank, bold if it leads."""
    note, is_primary = "", _is_asked(found.question, scores)
    if is_primary and (places := found.final_ranks.get(key)):
        note = f"rank {place_words(places)}"
    if is_primary and found.question.unit == "dataset" and key in found.mean_ranks:
        note = ", ".join([*filter(None, [note]), f"mean rank {found.mean_ranks[key]:.1f}"])
    if is_primary:
        ranges = [f"readings {span(rows.values())}" for rows in readings_of(found).values() if key in rows]
        note = ", ".join([*filter(None, [note]), *ranges])
    if scores.variant == "last_epoch":
        known = sum(run.last_epoch is not None for run in own)
        note = f"({known} of {counted(len(own), 'run')})" if 0 < known < len(own) else ""
    leads = is_primary and key in found.leading
    return measured_cell(scores.intervals.get(key), scores.form, leads=leads, note=note)


def _is_asked(question: Question, scores: _Scores) -> bool:
    return (scores.variant, scores.metric) == (question.embeddings, question.score)


def _values(
    found: Answer,
    key: str,
    own: Sequence[RunRecord],
    scores: Sequence[_Scores],
    ranks: tuple[int | None, int | None],
) -> Iterator[tuple[Value, ...]]:
    """Return the sheet's rows of a method, without those that have no value."""
    unit = "search" if found.question.methods[key].searches else "run"
    runs = sum(map(len, found.runs.get(key, {}).values()))
    for one in scores:
        if interval := one.intervals.get(key):
            models = len(own[0].fold_fingerprints) if own and one.variant == "concatenated" else 1
            size = own[0].dimensions * models if own else None
            numbers = (interval.mean, interval.half_width, interval.n, unit, runs)
            places = ranks if _is_asked(found.question, one) else (None, None)
            yield (key, one.variant, one.metric, size, *numbers, *places)


def _count(found: Answer, key: str) -> Cell:
    """The number of runs; of complete searches and their runs as in `3 × 5` if searches are repeated."""
    own, planned = found.values[key], found.question.methods[key]
    of = f" of {own.count}" if own.failed else ""
    if planned.searches:
        return Cell(own.n, written=f"{own.n}{of} × {planned.runs}")
    if found.question.unit == "search":
        return Cell(own.runs, written=counted(own.runs, "run"))
    return Cell(own.n, written=f"{own.n}{of}" if of else "")


def _caption(found: Answer) -> str:
    if not found.runs:
        return "The store has no run of this experiment."
    name = found.question.score_name
    compared = f"No two methods are compared in {name}."
    if found.pairs:
        compared = f"Compared in the primary score, {name}: {asked_pairs(found)}."
        if found.interim:
            compared += " Interim: searches or runs are missing, so no value is bold."
    of_data = ""
    if measured := found.measured:
        first = measured.records[0]
        tested = measured.plan.tested(first.test_images)
        of_data = f"Dataset {first.dataset}: {tested} of {counted(first.test_classes, 'test class')}. "
    numbers = "Percentages" if found.question.in_percent else "Scores"
    if found.question.lower_is_better:
        numbers += ", lower is better"
    interval = " ± half width of the 95 % interval"
    if found.question.unit == "dataset":
        interval = " over the datasets, and the mean of the method's ranks on them"
        return f"{of_data}{numbers}: mean{interval}. {compared}"
    return f"{of_data}{numbers}: mean{interval} over {_units_words(found.question)}. {compared}"


def _units_words(question: Question) -> str:
    match question.unit:
        case "search":
            searches = {planned.searches for planned in question.methods.values()} - {0}
            return "n searches" if len(searches) > 1 else counted(question.units, "search")
        case "single search":
            return "n runs of the settings that one search found"
        case "block":
            return f"n {question.shared} values that all methods share, so differences are surer than these"
        case "fold":
            return "n folds, which share training data"
    return "n runs"


def _settings(measured: MeasuredExperiment) -> str:
    """Where the settings come from, and what the kinds of embeddings are."""
    plan, first, dimensions = measured.plan, measured.records[0], measured.dimensions
    folds = len(first.fold_fingerprints)
    if plan.trials == 0 or not measured.searched_methods:
        given = "Hyperparameters: given, not searched."
    else:
        given = f"Hyperparameters: best of {counted(plan.trials, 'trial')} by validation MAP@R."
    return (
        f"{given} Separated: mean of {folds} {dimensions}-dim models; concatenated: their {folds * dimensions}-dim "
        f"ensemble. Base seed {first.seed}."
    )


def _not_printed(found: Answer, rows: Iterable[Row]) -> Iterator[str]:
    """Name the methods with an interval that holds all scores."""
    whole = {
        row.key: row.head
        for row in rows
        for cell in row.cells
        if cell.half_width is not None and not half_width_text(cell)
    }
    if whole:
        counts = [len(found.values[key].units) for key in whole]
        unit = "search" if found.question.unit == "search" else "run"
        of = counted_span(counts, unit)
        yield f"An interval over {of} that holds all scores is not printed: {joined([*whole.values()])}."


def _reading(found: Answer, *, last_epoch: bool) -> list[str]:
    """How to read the columns and the intervals."""
    if not found.runs:
        return []
    sentences = [_settings(found.measured)] if found.measured else []
    if found.question.unit == "search":
        sentences.append(
            "An interval takes the mean of a search's runs as one value. Its variance is pooled over the methods, or "
            "the method's own if that is larger."
        )
    if found.final_ranks:
        sentences.append("Rank: the places that a method can have by this comparison, all of them at once at 95 %.")
    if last_epoch:
        sentences.append("Last epoch: the same trainings at their end, without a choice of the epoch.")
    return sentences


def _single_searches(found: Answer) -> Iterator[str]:
    """The means of every method's complete searches in the asked score, if searches are repeated."""
    if found.question.unit != "search" or sum(len(own) for own in found.runs.values()) > _MOST_SEARCHES:
        return
    form = score_form(found.question.digits + 1)
    means = [
        f"{found.titles[key]} {', '.join(found.question.number(unit, form=form) for unit in found.values[key].units)}"
        + "".join(f", set aside {found.question.number(unit, form=form)}" for unit in found.values[key].failed)
        for key in found.compared
        if found.values[key].planned.searched
    ]
    if means:
        yield f"Single searches, {found.question.score_name}: {'; '.join(means)}."
