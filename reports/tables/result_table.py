"""Table of an experiment's results: one row per method, means over runs with their intervals."""

from collections.abc import Mapping, Sequence

from reports.tables.best_marks import column_marks
from reports.tables.table import PERCENT, Cell, Column, Mark, Row, Sheet, Table, Value, measured_cell
from results.experiment_results import MeasuredExperiment
from results.headline_metrics import HEADLINE_METRICS
from results.provenance import mixed_versions
from results.records import RunRecord
from results.statistics.intervals import student_t_interval
from results.statistics.run_values import EMBEDDING_KINDS, EmbeddingKind, run_values, value_of

ResultColumn = tuple[EmbeddingKind, str]
"""Kind of embeddings, and metric."""

RESULT_COLUMNS: tuple[ResultColumn, ...] = tuple(
    (kind, metric) for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS
)
"""The columns of results in the order of the table. The number of runs is in a column before them."""

_HEADER = ("method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n")


def result_cells(row: Row) -> dict[ResultColumn, Cell]:
    """Return the cells of a row of results, by column."""
    return dict(zip(RESULT_COLUMNS, row.lines[0].cells[1:], strict=True))


def table_of(measured: MeasuredExperiment) -> Table:
    """Build the table of an experiment's results, see `build_table`."""
    summary = measured.summary
    return build_table(
        measured.records,
        summary.methods,
        summary.title,
        reproductions=summary.reproductions,
        trials=summary.trials,
        runs=summary.runs,
        own_conditions=summary.own_conditions,
    )


def missing_runs(measured: MeasuredExperiment) -> tuple[str, ...]:
    """Name the runs that the experiment plans and the store lacks, as sentences without a full stop."""
    return _missing(measured.records, measured.summary.methods, measured.summary.runs)


def build_table(
    records: Sequence[RunRecord],
    methods: Mapping[str, str],
    title: str,
    reproductions: int,
    trials: int,
    runs: Mapping[str, int] | None = None,
    own_conditions: Mapping[str, str] | None = None,
) -> Table:
    """Build the table of results from runs.

    A method without runs has no row. A note names the method as missing.

    Args:
        records: Runs of any methods.
        methods: Titles by key, in the order of the rows.
        title: Title of the experiment.
        reproductions: Number of runs that the experiment plans per method.
        trials: Number of search trials that the experiment plans per method.
        runs: Number of planned runs by method, 1 for a method that is not in it.
        own_conditions: Phrases by method for rows under conditions of their own. They are not compared with others.

    Returns:
        Percentages with the half width of the 95 % interval. The sheet has one row per cell, with fractions of 1.
    """
    own_conditions = own_conditions or {}
    marks = _marks([record for record in records if record.method in methods and record.method not in own_conditions])
    rows, notes, values = [], [], []
    for key, method_title in methods.items():
        method_runs = [record for record in records if record.method == key]
        if method_runs:
            dimensions = method_runs[0].dimensions
            suffix = "" if dimensions == _trained_dimensions(records) else f" ({dimensions}-dim)"
            row = _row(key, method_title + suffix, method_runs, marks, "†" if key in own_conditions else "")
            rows.append(row)
            if key in own_conditions:
                notes.append(f"† {row.head}: {own_conditions[key]}. Not compared with rows under other conditions.")
            notes += [f"* {row.head}: {run.name}, {flag}" for run in method_runs for flag in run.flags]
            values += _values(row, method_runs[0])
    for package, versions in mixed_versions(record.provenance for record in records).items():
        notes.append(f"The runs were made with different versions of {package}: {', '.join(versions)}.")
    if missing := _missing(records, methods, runs):
        notes.append("Partial: " + "; ".join(missing) + ".")
    return Table(
        title=title,
        caption=_caption(records, reproductions, trials),
        columns=(Column("n"), *(Column(HEADLINE_METRICS[metric], group=kind) for kind, metric in RESULT_COLUMNS)),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(values)),
        notes=tuple(notes),
    )


def _missing(
    records: Sequence[RunRecord], methods: Mapping[str, str], runs: Mapping[str, int] | None
) -> tuple[str, ...]:
    missing = []
    for key, title in methods.items():
        count = sum(record.method == key for record in records)
        planned = (runs or {}).get(key, 1)
        if not count:
            missing.append(f"{title} has no finished run")
        elif count < planned:
            missing.append(f"{title} has {count} of {planned} runs")
    return tuple(missing)


def _marks(records: Sequence[RunRecord]) -> dict[ResultColumn, dict[str, Mark]]:
    """Return the marks by column and method. Means are compared within each column."""
    return {(kind, metric): column_marks(run_values(records, metric, kind)) for kind, metric in RESULT_COLUMNS}


def _row(
    key: str, title: str, runs: Sequence[RunRecord], marks: Mapping[ResultColumn, Mapping[str, Mark]], sign: str
) -> Row:
    cells = [Cell(len(runs))]
    for kind, metric in RESULT_COLUMNS:
        interval = student_t_interval([value_of(run, metric, kind) for run in runs])
        cells.append(measured_cell(interval, PERCENT, marks[kind, metric].get(key, "")))
    return Row.single(title, cells, key, sign=sign + ("*" if any(run.flags for run in runs) else ""))


def _values(row: Row, run: RunRecord) -> list[tuple[Value, ...]]:
    dimensions = {"separated": run.dimensions, "concatenated": run.dimensions * len(run.fold_fingerprints)}
    return [
        (row.key, kind, metric, dimensions[kind], cell.value, cell.half_width, cell.n)
        for (kind, metric), cell in result_cells(row).items()
    ]


def _caption(records: Sequence[RunRecord], reproductions: int, trials: int) -> str:
    if not records:
        return "The store has no run of this experiment."
    first, dimensions = records[0], _trained_dimensions(records)
    folds = len(first.fold_fingerprints)
    return (
        f"Dataset {first.dataset}: {first.test_images} images of {first.test_classes} test classes, which are used "
        "neither in training nor in search. Values are percentages: mean ± half width of the 95 % Student-t interval "
        f"over n runs ({reproductions} planned). Hyperparameters: best of {trials} trials per method by validation "
        f"MAP@R. Separated: mean of {folds} {dimensions}-dim models; concatenated: their {folds * dimensions}-dim "
        f"ensemble. Base seed {first.seed}."
    )


def _trained_dimensions(records: Sequence[RunRecord]) -> int:
    """Return the dimensions of one fold's embedding. The untrained trunk has other dimensions and no search."""
    return next((record for record in records if record.hyperparameters), records[0]).dimensions
