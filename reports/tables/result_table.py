"""Table of an experiment's results: one row per method, means over runs with their intervals."""

from collections.abc import Sequence

from reports.tables.result_notes import origin_of_hyperparameters, result_notes
from reports.tables.table import PERCENT, Cell, Column, Mark, Row, Sheet, Table, Value, measured_cell
from results.records.provenance import mixed_versions
from results.records.records import RunRecord
from results.spec.data_choice import samples_word
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.intervals import student_t_interval
from results.statistics.method_comparison import ComparisonResult
from results.statistics.primary_comparison import mixed_trainings, primary_comparison, primary_score
from results.statistics.run_values import EMBEDDING_KINDS, EmbeddingKind, search_interval, values_by_run
from results.store.experiment_results import MeasuredExperiment

ResultColumn = tuple[EmbeddingKind, str]
"""Kind of embeddings, and metric."""

RESULT_COLUMNS: tuple[ResultColumn, ...] = tuple(
    (kind, metric) for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS
)
"""The columns of results in the order of the table. The number of runs is in a column before them."""

_HEADER = ("method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n")


def result_cells(row: Row) -> dict[ResultColumn, Cell]:
    """Return the cells of a row of results, by column."""
    return dict(zip(RESULT_COLUMNS, row.lines[0].cells[1 : 1 + len(RESULT_COLUMNS)], strict=True))


def cells_beside(row: Row) -> tuple[Cell, ...]:
    """Return the cells of a row that follow the results: the scores after the last epoch, if the table has them."""
    return row.lines[0].cells[1 + len(RESULT_COLUMNS) :]


def table_of(measured: MeasuredExperiment) -> Table:
    """Build the table of results: percentages with the half width of the 95 % interval.

    A method without runs has no row; a note names it. Only the column of the primary score has marks. If runs have
    scores after the last epoch, the last columns show them. The sheet has one row per cell, with fractions of 1.
    """
    records, summary = measured.records, measured.summary
    score, marks = primary_score(measured), _marks(primary_comparison(measured))
    runs = {key: [record for record in records if record.method == key] for key in summary.methods}
    last_epoch = any(record.last_epoch for own in runs.values() for record in own)
    left_out = summary.left_out
    rows, notes, values = [], [], []
    for key, own in runs.items():
        if not own:
            continue
        suffix = "" if own[0].dimensions == _trained_dimensions(records) else f" ({own[0].dimensions}-dim)"
        sign = left_out[key].sign if key in left_out else ""
        cells = [Cell(len(own))]
        for column in RESULT_COLUMNS:
            mark = marks.get(key, "") if column == (score.embeddings, score.metric) else ""
            cells.append(measured_cell(search_interval(values_by_run(own, column[1], column[0])[key]), PERCENT, mark))
        cells += _last_epoch(own) if last_epoch else []
        flagged = "*" if any(run.flags for run in own) else ""
        row = Row.single(summary.methods[key] + suffix, cells, key, sign + flagged)
        rows.append(row)
        notes += [f"{sign} {row.head}: {left_out[key].note}"] if key in left_out else []
        notes += [f"* {row.head}: {run.name}, {flag}" for run in own for flag in run.flags]
        values += _values(row, own[0])
    return Table(
        title=summary.title,
        caption=_caption(measured, last_epoch=last_epoch),
        columns=_columns(last_epoch=last_epoch),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(values)),
        notes=(*notes, *_table_notes(measured), *result_notes(measured)),
    )


def missing_runs(measured: MeasuredExperiment) -> tuple[str, ...]:
    """Name the runs that the experiment plans and the store lacks, as sentences without a full stop."""
    missing = []
    for key, title in measured.summary.methods.items():
        count = sum(record.method == key for record in measured.records)
        planned = measured.summary.runs.get(key, 1)
        if not count:
            missing.append(f"{title} has no finished run")
        elif count < planned:
            missing.append(f"{title} has {count} of {planned} runs")
    return tuple(missing)


def _marks(comparison: ComparisonResult | None) -> dict[str, Mark]:
    if comparison is None or len(comparison.methods) < 2:
        return {}
    marks: dict[str, Mark] = dict.fromkeys(comparison.leading, "tied")
    marks.update(dict.fromkeys(comparison.untested, "untested"))
    marks[comparison.highest] = "best"
    return marks


def _last_epoch(runs: Sequence[RunRecord]) -> list[Cell]:
    """The scores after the last epoch; empty cells for a method without them."""
    known = [run.last_epoch for run in runs if run.last_epoch is not None]
    if not known:
        return [Cell() for _ in HEADLINE_METRICS]
    note = f"({len(known)} of {len(runs)} runs)" if len(known) < len(runs) else ""
    intervals = [student_t_interval([getattr(scores, metric) for scores in known]) for metric in HEADLINE_METRICS]
    return [measured_cell(interval, PERCENT, note=note) for interval in intervals]


def _table_notes(measured: MeasuredExperiment) -> list[str]:
    notes = [] if (mixed := mixed_trainings(measured.records)) is None else [mixed]
    notes += [
        f"The runs were made with different versions of {package}: {', '.join(versions)}."
        for package, versions in mixed_versions(record.provenance for record in measured.records).items()
    ]
    missing = missing_runs(measured)
    return [*notes, "Partial: " + "; ".join(missing) + "."] if missing else notes


def _columns(*, last_epoch: bool) -> tuple[Column, ...]:
    results = [Column(HEADLINE_METRICS[metric], group=kind) for kind, metric in RESULT_COLUMNS]
    beside = [Column(title, group="last epoch") for title in HEADLINE_METRICS.values()] if last_epoch else []
    return (Column("n"), *results, *beside)


def _values(row: Row, run: RunRecord) -> list[tuple[Value, ...]]:
    dimensions = {"separated": run.dimensions, "concatenated": run.dimensions * len(run.fold_fingerprints)}
    results = [
        (row.key, kind, metric, dimensions[kind], cell.value, cell.half_width, cell.n)
        for (kind, metric), cell in result_cells(row).items()
    ]
    beside = [
        (row.key, "last_epoch", metric, run.dimensions, cell.value, cell.half_width, cell.n)
        for metric, cell in zip(HEADLINE_METRICS, cells_beside(row), strict=False)
        if not cell.empty
    ]
    return [*results, *beside]


def _caption(measured: MeasuredExperiment, *, last_epoch: bool) -> str:
    records, summary, score = measured.records, measured.summary, primary_score(measured)
    if not records:
        return "The store has no run of this experiment."
    first, dimensions = records[0], _trained_dimensions(records)
    folds, searches = len(first.fold_fingerprints), 1 + max(record.search for record in records)
    planned, over = f"{summary.reproductions} planned", "over n runs"
    if searches > 1:
        planned += f" for each of {searches} searches"
        over = "over the means of the searches, with n runs in all"
    at_end = "Last epoch: the same trainings at their end, without a choice of the epoch. " if last_epoch else ""
    return (
        f"Dataset {first.dataset}: {first.test_images} {samples_word(first.dataset)} of {first.test_classes} test "
        "classes, which are used neither in training nor in search. "
        "Values are percentages: mean ± half width of the 95 % Student-t interval "
        f"{over} ({planned}). {origin_of_hyperparameters(first.protocol, summary.trials)} "
        f"Separated: mean of {folds} {dimensions}-dim models; concatenated: their {folds * dimensions}-dim "
        f"ensemble. {at_end}Base seed {first.seed}. Methods are tested in the primary score, {score.embeddings} "
        f"{HEADLINE_METRICS[score.metric]}; the other scores are secondary and not tested."
    )


def _trained_dimensions(records: Sequence[RunRecord]) -> int:
    """Return the dimensions of one fold's embedding. The untrained trunk has other dimensions and no search."""
    return next((record for record in records if record.hyperparameters), records[0]).dimensions
