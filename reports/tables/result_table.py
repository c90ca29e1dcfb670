"""Table of an experiment's results: one row per method, means over searches or runs with their intervals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reports.tables.differences import asked_pairs
from reports.tables.table import (
    Cell,
    Column,
    Row,
    Sheet,
    Table,
    Value,
    cell_text,
    half_width_text,
    measured_cell,
)
from results.answer.answer_question import intervals_on
from results.answer.answers import Answer
from results.answer.intervals import Interval
from results.answer.question import Question
from results.answer.values import MethodValues
from results.findings.experiment import ExperimentAnswer, readings_of
from results.numbers import PERCENT, NumberFormat
from results.records.frame import EMBEDDING_KINDS, EmbeddingKind
from results.records.records import RunRecord
from results.spec.component import SourceName
from results.spec.mlrc_constants import HEADLINE_METRICS, is_in_percent
from results.spec.plan import LeftOut
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, counted_span, joined, place_words

ResultColumn = tuple[EmbeddingKind, str]
"""Kind of embeddings, and metric."""

RESULT_COLUMNS: tuple[ResultColumn, ...] = tuple(
    (kind, metric) for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS
)
"""The columns of results in the order of the table. The number of runs is in a column before them."""

_HEADER = ("method", "variant", "metric", "dimensions", "mean", "", "n", "unit", "runs", "rank_low", "rank_high")
_TITLES = {
    **HEADLINE_METRICS,
    "map@1000": "mAP@1000",
    "nmi": "NMI",
    "spectral_decay": "spectral decay",
    "class_concentration_variance": "concentration variance",
    "total_training_steps": "steps",
}
_AS_COMPUTED = NumberFormat(digits=4, significant=True)
_RANK = Column(
    "rank", meaning="Rank: the places that a method can have by this comparison, all of them at once at 95 %."
)
_MOST_SEARCHES = 100
"""Largest number of searches whose single values are listed."""


class _Scores(NamedTuple):
    """A column of scores: embeddings and metric, its metric in the sheet, heading, intervals by method, and format."""

    embeddings: str
    metric: str
    in_sheet: str
    column: Column
    intervals: Mapping[str, Interval]
    form: NumberFormat = PERCENT


def metric_title(name: str) -> str:
    """Return a short title of a metric of the suite, such as `R@2` for `recall@2`."""
    return _TITLES.get(name, name.replace("recall@", "R@"))


def score_title(embeddings: str, metric: str) -> str:
    """Return the title of a headline score's column, such as `concatenated MAP@R`."""
    return f"{embeddings.replace('_', ' ')} {metric_title(metric)}"


def count_title(question: Question) -> str:
    """Return the title of the column with the numbers of searches and runs."""
    return "searches × runs" if question.sample.of_searches else "n"


def table_of(found: Answer) -> Table:
    """Build the table of results: percentages with the half width of the 95 % interval.

    The method that each other is compared with by its name comes first. A method without runs has no row; a note
    names it. Only values of the primary score are bold. If runs have scores after the last epoch or of further
    metrics, the last columns show them. The sheet has one row per cell, with fractions of 1.
    """
    measured = found.measured if isinstance(found, ExperimentAnswer) else None
    runs = measured.runs if measured else {}
    sizes = _sizes(found, measured)
    named_first = sorted(sizes, key=lambda key: key != found.question.compare)
    titles = {key: found.titles[key] + sizes[key] for key in named_first}
    further = _further_titles(measured.records if measured else ())
    scores = _scores(found, list(further), further) if measured else _scores(found, None, {})
    counts = {key: _count(found.question, found.values[key]) for key in titles}
    columns = _columns(found, scores, list(titles), runs)
    signs = {key: found.left_out[key].sign if key in found.left_out else "" for key in titles}
    signs = {key: sign + ("*" if any(run.events for run in runs.get(key, ())) else "") for key, sign in signs.items()}
    rows = [
        Row(title, (counts[key], *(cells[key] for _, cells in columns)), key, signs[key])
        for key, title in titles.items()
    ]
    ranks = found.final_ranks
    values = [
        row for key in titles for row in _values(found, key, runs.get(key, ()), scores, ranks.get(key, (None, None)))
    ]
    return Table(
        title=found.question.title,
        caption=_caption(found, measured, rows),
        columns=(Column(count_title(found.question)), *(column for column, _ in columns)),
        rows=tuple(rows),
        own_sheet=Sheet(tuple(name or found.scaling.spread_in_files for name in _HEADER), tuple(values)),
        in_latex=_in_latex(found, [column for column, _ in columns], list(counts.values())),
        notes=(
            *_left_out(found, titles),
            *(finding.sentences for finding in found.findings if finding.level != "note"),
            *_star(titles, runs),
            *_not_printed(found, rows),
            *_single_searches(found),
        ),
        remarks=(
            *_reading(found, measured, last_epoch=any(one.embeddings == "last_epoch" for one in scores)),
            *_about_further(further),
            *(finding.sentences for finding in found.findings if finding.level == "note"),
        ),
    )


def _left_out(found: Answer, titles: Mapping[str, str]) -> Iterator[str]:
    """Say why rows are not tested against the others, one sentence for each reason."""
    rows: dict[LeftOut, list[str]] = {}
    for key, title in titles.items():
        if key in found.left_out:
            rows.setdefault(found.left_out[key], []).append(title)
    for reason, of_reason in rows.items():
        yield f"{reason.sign} {joined(of_reason)}: {reason.note}"


def _star(titles: Mapping[str, str], runs: Mapping[str, Sequence[RunRecord]]) -> Iterator[str]:
    """Say what the star at a row means, if any has one."""
    if any(run.events for key in titles for run in runs.get(key, ())):
        yield "* A training diverged, skipped steps, made equal embeddings or did not beat the untrained network."


def _in_latex(found: Answer, columns: Sequence[Column], counts: Sequence[Cell]) -> tuple[str, ...]:
    """The columns of the primary score's embeddings and its ranks, and the counts where methods differ in them."""
    unlike = [count_title(found.question)] if len(set(map(cell_text, counts))) > 1 else []
    groups = (found.question.embeddings.replace("_", " "), "")
    return (*unlike, *(column.title for column in columns if column.group in groups))


def _sizes(found: Answer, measured: MeasuredExperiment | None) -> dict[str, str]:
    """The methods that have a row, each with the dimensions of its embeddings if they are unusual."""
    runs = measured.runs if measured else {}
    usual = measured.dimensions if measured and measured.records else None
    own = {key: runs[key][0].dimensions if key in runs else usual for key in found.titles}
    return {
        key: "" if own[key] == usual else f" ({own[key]}-dim)"
        for key in found.question.methods
        if (key in runs or key in found.intervals) and found.shows(key)
    }


def _scores(found: Answer, further: Sequence[str] | None, titles: Mapping[str, str]) -> list[_Scores]:
    """The columns of an experiment: headline scores, those after the last epoch, further ones; else all of the frame.

    Further ones are `recall@2`, `nmi` and the like, and functions of the user, by their titles.
    """
    there = dict.fromkeys(zip(found.frame["embeddings"], found.frame["metric"], strict=True))
    last = (("last_epoch", metric) for metric in HEADLINE_METRICS)
    names = [*RESULT_COLUMNS, *last, *((kind, name) for kind in EMBEDDING_KINDS for name in further or ())]
    shown = [one for one in names if one in there or one in RESULT_COLUMNS] if further is not None else list(there)
    intervals = intervals_on(found, [(metric, kind) for kind, metric in shown])
    columns = []
    for kind, metric in shown:
        title = titles.get(metric, metric_title(metric))
        group = f"further, {kind}" if metric in titles else kind.replace("_", " ")
        form = PERCENT if metric not in titles or is_in_percent(metric) else _AS_COMPUTED
        if (kind, metric) == (found.question.embeddings, found.question.score):
            form = found.scaling.score_format(more=True)
        in_sheet = title if SourceName.parse(metric) else metric
        columns.append(_Scores(kind, metric, in_sheet, Column(title, group), intervals[metric, kind], form))
    return columns


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


def _columns(
    found: Answer, scores: Sequence[_Scores], methods: Sequence[str], runs: Mapping[str, Sequence[RunRecord]]
) -> list[tuple[Column, Mapping[str, Cell]]]:
    """The columns with their cells by method: scores, and the ranks behind the primary one."""
    ranks = {key: Cell(place_words(places)) for key, places in found.final_ranks.items()}
    columns: list[tuple[Column, Mapping[str, Cell]]] = []
    for one in scores:
        columns.append((one.column, _score_cells(found, one, methods, runs)))
        if ranks and _is_primary(found, one):
            columns.append((_RANK, {key: ranks.get(key, Cell()) for key in methods}))
    return columns


def _is_primary(found: Answer, scores: _Scores) -> bool:
    return (scores.embeddings, scores.metric) == (found.question.embeddings, found.question.score)


def _score_cells(
    found: Answer, scores: _Scores, methods: Sequence[str], runs: Mapping[str, Sequence[RunRecord]]
) -> dict[str, Cell]:
    """Means with their intervals; of the primary score bold where a method leads."""
    is_primary = _is_primary(found, scores)
    notes, leading = _notes(found) if is_primary else {}, found.leading if is_primary else frozenset()
    if scores.embeddings == "last_epoch":
        known = {key: sum(run.last_epoch is not None for run in own) for key, own in runs.items()}
        notes = {
            key: f"({known[key]} of {counted(len(own), 'run')})"
            for key, own in runs.items()
            if 0 < known[key] < len(own)
        }
    return {
        key: measured_cell(scores.intervals.get(key), scores.form, leads=key in leading, note=notes.get(key, ""))
        for key in methods
    }


def _notes(found: Answer) -> dict[str, str]:
    """What stands after the primary score of each method: its mean rank, and the range of its recipe's readings."""
    readings = readings_of(found).values() if isinstance(found, ExperimentAnswer) else ()
    mean_ranks = found.mean_ranks if found.sample.test == "ranks" else {}
    notes = {}
    for key in found.titles:
        mean = [f"mean rank {mean_ranks[key]:.1f}"] if key in mean_ranks else []
        ranges = [f"readings {found.scaling.scores(rows.values())}" for rows in readings if key in rows]
        notes[key] = ", ".join([*mean, *ranges])
    return notes


def _values(
    found: Answer,
    key: str,
    own: Sequence[RunRecord],
    scores: Sequence[_Scores],
    ranks: tuple[int | None, int | None],
) -> Iterator[tuple[Value, ...]]:
    """Return the sheet's rows of a method, without those that have no value."""
    unit = "search" if found.question.methods[key].searches else "run"
    runs = sum(map(len, found.runs.get(key, {}).values())) if found.sample.counted else None
    models, dimensions = (len(own[0].fold_fingerprints), own[0].dimensions) if own else (1, None)
    for one in scores:
        if interval := one.intervals.get(key):
            size = dimensions and dimensions * (models if one.embeddings == "concatenated" else 1)
            is_primary = _is_primary(found, one)
            ends = (interval.mean, interval.half_width)
            numbers = (
                *(map(found.scaling.in_file, ends) if is_primary else ends),
                interval.n if runs else None,
                unit,
                runs,
            )
            yield (key, one.embeddings, one.in_sheet, size, *numbers, *(ranks if is_primary else (None, None)))


def _count(question: Question, own: MethodValues) -> Cell:
    """The number of runs; of complete searches and their runs as in `3 × 5` if searches are repeated."""
    planned = own.planned
    of = f" of {own.count}" if own.failed else ""
    if planned.by_search:
        return Cell(own.n, written=f"{own.n}{of} × {planned.runs}")
    if question.sample.of_searches:
        return Cell(own.runs, written=counted(own.runs, "run"))
    if not question.sample.counted:
        return Cell(None, written="not known")
    return Cell(own.n, written=f"{own.n}{of}" if of else "")


def _caption(found: Answer, measured: MeasuredExperiment | None, rows: Sequence[Row]) -> str:
    if not found.runs:
        return "The store has no run of this experiment."
    name = found.question.score_name
    compared = f"No two methods are compared in {name}."
    if found.shown_pairs:
        primary = "the primary score, " if found.question.experiment else ""
        compared = f"Compared in {primary}{name}: {asked_pairs(found)}."
        if found.interim:
            compared += " Interim: searches or runs are missing, so no value is bold."
    of_data = ""
    if measured:
        first = measured.records[0]
        tested = measured.plan.tested(first.test_images)
        of_data = f"Dataset {first.dataset}: {tested} of {counted(first.test_classes, 'test class')}. "
    numbers = found.scaling.numbers
    if found.question.lower_is_better:
        numbers += ", lower is better"
    interval = found.scaling.spread if found.sample.test != "ranks" and found.sample.counted else ""
    if interval and any(cell.is_cut for row in rows for cell in row.cells):
        interval += found.scaling.cut
    unlike = len({planned.searches for planned in found.question.methods.values()} - {0}) > 1
    number = f"n {found.sample.words}" if unlike else counted(found.question.units, found.sample.word)
    mean = f"{found.scaling.mean}{interval} over {found.sample.means.replace('{n}', number)}"
    return f"{of_data}{numbers}: {mean}. {compared}"


def _settings(measured: MeasuredExperiment) -> str:
    """Where the settings come from, and what the kinds of embeddings are."""
    plan, first, dimensions = measured.plan, measured.records[0], measured.dimensions
    folds = len(first.fold_fingerprints)
    if plan.trials == 0 or not measured.searched_methods:
        given = "Hyperparameters: given, not searched here."
    else:
        given = f"Hyperparameters: best of {counted(plan.most_trials, 'trial')} by validation MAP@R."
    return (
        f"{given} Separated: mean of {folds} {dimensions}-dim models; concatenated: their {folds * dimensions}-dim "
        f"ensemble. Base seed {first.seed}."
    )


def _not_printed(found: Answer, rows: Iterable[Row]) -> Iterator[str]:
    """Name the methods with an interval from the lowest to the highest score."""
    whole = {
        row.key: row.head
        for row in rows
        for cell in row.cells
        if cell.half_width is not None and not half_width_text(cell)
    }
    if whole:
        counts = [len(found.values[key].units) for key in whole]
        of = counted_span(counts, found.sample.value)
        which = "that would reach from the lowest to the highest score"
        yield f"An interval over {of} {which} is not printed: {joined([*whole.values()])}."


def _reading(found: Answer, measured: MeasuredExperiment | None, *, last_epoch: bool) -> list[str]:
    """How to read the columns and the intervals."""
    if not found.runs:
        return []
    sentences = [_settings(measured)] if measured else []
    if found.sample.of_searches:
        sentences.append(
            "An interval takes the mean of a search's runs as one value. Its variance is pooled over the methods, or "
            "the method's own if that is larger, times 1 + 1/(S − 1)² for S searches."
        )
    if found.final_ranks:
        sentences.append(_RANK.meaning)
    if last_epoch:
        sentences.append("Last epoch: the same trainings at their end, without a choice of the epoch.")
    return sentences


def _single_searches(found: Answer) -> Iterator[str]:
    """The means of every method's complete searches in the asked score, if searches are repeated."""
    if not found.sample.of_searches or sum(len(own) for own in found.runs.values()) > _MOST_SEARCHES:
        return
    text = found.scaling.score_format(more=True).text
    means = [
        f"{found.titles[key]} {', '.join(map(text, found.values[key].units))}"
        + "".join(f", set aside {text(unit)}" for unit in found.values[key].failed)
        for key in found.compared
        if found.values[key].planned.searched
    ]
    if means:
        yield f"Single searches, {found.question.score_name}: {'; '.join(means)}."
