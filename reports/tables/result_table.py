"""Table of an experiment's results: one row per method, means over runs with their intervals."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from reports.tables.result_notes import origin_of_hyperparameters, result_notes
from reports.tables.table import PERCENT, Cell, Column, Mark, Row, Sheet, Table, Value, measured_cell
from results.records.experiment_summary import LeftOut
from results.records.provenance import mixed_versions
from results.records.records import RunRecord
from results.spec.data_choice import samples_word
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.intervals import student_t_interval
from results.statistics.method_comparison import ALPHA, ComparisonResult
from results.statistics.primary_comparison import comparison_on, default_score, level_of, mixed_trainings, primary_score
from results.statistics.run_values import EMBEDDING_KINDS, EmbeddingKind, search_interval, values_by_run
from results.store.experiment_results import MeasuredExperiment


def marks_of(comparison: ComparisonResult | None) -> dict[str, Mark]:
    """Mark the methods of a comparison.

    Args:
        comparison: The comparison; None without runs.

    Returns:
        Marks by method, for the methods that have one. A single method has none.
    """
    if comparison is None or len(comparison.methods) < 2:
        return {}
    marks: dict[str, Mark] = dict.fromkeys(comparison.leading, "tied")
    marks.update(dict.fromkeys(comparison.untested, "untested"))
    marks[comparison.highest] = "best"
    return marks


ResultColumn = tuple[EmbeddingKind, str]
"""Kind of embeddings, and metric."""

RESULT_COLUMNS: tuple[ResultColumn, ...] = tuple(
    (kind, metric) for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS
)
"""The columns of results in the order of the table. The number of runs is in a column before them."""

_LAST_EPOCH = "last epoch"
_HEADER = ("method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n")


def result_cells(row: Row) -> dict[ResultColumn, Cell]:
    """Return the cells of a row of results, by column."""
    return dict(zip(RESULT_COLUMNS, row.lines[0].cells[1 : 1 + len(RESULT_COLUMNS)], strict=True))


def cells_beside(row: Row) -> tuple[Cell, ...]:
    """Return the cells of a row that follow the results: the scores after the last epoch, if the table has them."""
    return row.lines[0].cells[1 + len(RESULT_COLUMNS) :]


def table_of(measured: MeasuredExperiment) -> Table:
    """Build the table of an experiment's results, see `build_table`."""
    summary = measured.summary
    table = build_table(
        measured.records,
        summary.methods,
        summary.title,
        reproductions=summary.reproductions,
        trials=summary.trials,
        runs=summary.runs,
        left_out=summary.left_out,
        primary=primary_score(measured),
        alpha=level_of(measured),
        constant=summary.constant,
    )
    return replace(table, notes=(*table.notes, *result_notes(measured)))


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
    left_out: Mapping[str, LeftOut] | None = None,
    primary: PrimaryScore | None = None,
    alpha: float = ALPHA,
    constant: Collection[str] = (),
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
        left_out: Signs and notes by method for rows that are not compared with the others.
        primary: The score whose column has marks; None takes the default of the runs.
        alpha: Level of the comparison behind the marks.
        constant: Methods with one run that stands for all.

    Returns:
        Percentages with the half width of the 95 % interval. If runs have scores after the last epoch, the last columns
        show them without marks. The sheet has one row per cell, with fractions of 1.
    """
    left_out = left_out or {}
    score = primary or default_score(records)
    compared = {key: title for key, title in methods.items() if key not in left_out}
    marks: dict[ResultColumn, dict[str, Mark]] = {}
    marks[score.embeddings, score.metric] = marks_of(comparison_on(score, records, compared, alpha, constant))
    shows_last_epoch = any(record.last_epoch for record in records if record.method in methods)
    rows, notes, values = [], [], []
    for key, method_title in methods.items():
        method_runs = [record for record in records if record.method == key]
        if method_runs:
            dimensions = method_runs[0].dimensions
            suffix = "" if dimensions == _trained_dimensions(records) else f" ({dimensions}-dim)"
            row = _row(key, method_title + suffix, method_runs, marks, left_out[key].sign if key in left_out else "")
            if shows_last_epoch:
                row = _with_last_epoch(row, method_runs)
            rows.append(row)
            notes += _row_notes(row, method_runs, left_out.get(key))
            values += _values(row, method_runs[0])
    notes += _table_notes(records, methods, runs)
    return Table(
        title=title,
        caption=_caption(records, reproductions, trials, score, shows_last_epoch=shows_last_epoch),
        columns=_columns(shows_last_epoch=shows_last_epoch),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(values)),
        notes=tuple(notes),
    )


def _row_notes(row: Row, runs: Sequence[RunRecord], left_out: LeftOut | None) -> list[str]:
    reason = [] if left_out is None else [f"{left_out.sign} {row.head}: {left_out.note}"]
    return [*reason, *(f"* {row.head}: {run.name}, {flag}" for run in runs for flag in run.flags)]


def _table_notes(records: Sequence[RunRecord], methods: Mapping[str, str], runs: Mapping[str, int] | None) -> list[str]:
    """Notes on mixed versions of the training and of packages, and on missing runs."""
    notes = [] if (mixed := mixed_trainings(records)) is None else [mixed]
    notes += [
        f"The runs were made with different versions of {package}: {', '.join(versions)}."
        for package, versions in mixed_versions(record.provenance for record in records).items()
    ]
    missing = _missing(records, methods, runs)
    return [*notes, "Partial: " + "; ".join(missing) + "."] if missing else notes


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


def _row(
    key: str, title: str, runs: Sequence[RunRecord], marks: Mapping[ResultColumn, Mapping[str, Mark]], sign: str
) -> Row:
    """Make the row of a method. Only the column of the primary score has marks."""
    cells = [Cell(len(runs))]
    for kind, metric in RESULT_COLUMNS:
        interval = search_interval(values_by_run(runs, metric, kind)[key])
        cells.append(measured_cell(interval, PERCENT, marks.get((kind, metric), {}).get(key, "")))
    return Row.single(title, cells, key, sign=sign + ("*" if any(run.flags for run in runs) else ""))


def _columns(*, shows_last_epoch: bool) -> tuple[Column, ...]:
    results = [Column(HEADLINE_METRICS[metric], group=kind) for kind, metric in RESULT_COLUMNS]
    beside = [Column(title, group=_LAST_EPOCH) for title in HEADLINE_METRICS.values()] if shows_last_epoch else []
    return (Column("n"), *results, *beside)


def _with_last_epoch(row: Row, runs: Sequence[RunRecord]) -> Row:
    """Add the scores after the last epoch; empty cells for a method without them."""
    known = [run.last_epoch for run in runs if run.last_epoch is not None]
    note = f"({len(known)} of {len(runs)} runs)" if len(known) < len(runs) else ""
    beside = [Cell() for _ in HEADLINE_METRICS]
    if known:
        intervals = [student_t_interval([getattr(scores, metric) for scores in known]) for metric in HEADLINE_METRICS]
        beside = [measured_cell(interval, PERCENT, note=note) for interval in intervals]
    return Row.single(row.head, (*row.lines[0].cells, *beside), row.key, row.sign)


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


def _caption(
    records: Sequence[RunRecord], reproductions: int, trials: int, score: PrimaryScore, *, shows_last_epoch: bool
) -> str:
    if not records:
        return "The store has no run of this experiment."
    first, dimensions = records[0], _trained_dimensions(records)
    folds, searches = len(first.fold_fingerprints), 1 + max(record.search for record in records)
    planned = (
        f"{reproductions} planned" if searches == 1 else f"{reproductions} planned for each of {searches} searches"
    )
    over = "over n runs" if searches == 1 else "over the means of the searches, with n runs in all"
    last_epoch = (
        "Last epoch: the same trainings at their end, without a choice of the epoch. " if shows_last_epoch else ""
    )
    return (
        f"Dataset {first.dataset}: {first.test_images} {samples_word(first.dataset)} of {first.test_classes} test "
        "classes, which are used neither in training nor in search. "
        "Values are percentages: mean ± half width of the 95 % Student-t interval "
        f"{over} ({planned}). {origin_of_hyperparameters(first.protocol, trials)} "
        f"Separated: mean of {folds} {dimensions}-dim models; concatenated: their {folds * dimensions}-dim "
        f"ensemble. {last_epoch}Base seed {first.seed}. Methods are tested in the primary score, {score.embeddings} "
        f"{HEADLINE_METRICS[score.metric]}; the other scores are secondary and not tested."
    )


def _trained_dimensions(records: Sequence[RunRecord]) -> int:
    """Return the dimensions of one fold's embedding. The untrained trunk has other dimensions and no search."""
    return next((record for record in records if record.hyperparameters), records[0]).dimensions
