"""Table of an experiment's results: one row per method, means over searches or runs with their intervals."""

from collections.abc import Mapping, Sequence

from reports.tables.further_metrics import FurtherMetrics
from reports.tables.mixed_origins import mixed_origins
from reports.tables.result_notes import origin_of_hyperparameters, result_notes, single_searches
from reports.tables.table import PERCENT, Cell, Column, Mark, Row, Sheet, Table, Value, measured_cell
from reports.wording import asked_pairs, runs
from results.records.experiment_summary import ExperimentSummary
from results.records.records import RunRecord
from results.spec.data_choice import samples_word
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.comparison_result import ComparisonResult, MethodValues
from results.statistics.intervals import Interval
from results.statistics.primary_comparison import (
    method_intervals,
    primary_comparison,
    primary_score,
    unit_of,
    unit_values,
)
from results.statistics.run_values import EMBEDDING_KINDS, EmbeddingKind, values_by_run
from results.store.experiment_results import MeasuredExperiment

ResultColumn = tuple[EmbeddingKind, str]
"""Kind of embeddings, and metric."""

RESULT_COLUMNS: tuple[ResultColumn, ...] = tuple(
    (kind, metric) for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS
)
"""The columns of results in the order of the table. The number of runs is in a column before them."""

_HEADER = ("method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n", "unit", "runs")


def result_cells(row: Row) -> dict[ResultColumn, Cell]:
    """Return the cells of a row of results, by column."""
    return dict(zip(RESULT_COLUMNS, row.lines[0].cells[1 : 1 + len(RESULT_COLUMNS)], strict=True))


def cells_beside(row: Row) -> tuple[Cell, ...]:
    """Return the cells of a row that follow the results: scores after the last epoch and further metrics, if any."""
    return row.lines[0].cells[1 + len(RESULT_COLUMNS) :]


def table_of(measured: MeasuredExperiment) -> Table:
    """Build the table of results: percentages with the half width of the 95 % interval.

    A method without runs has no row; a note names it. Only the column of the primary score has marks. If runs have
    scores after the last epoch or of further metrics, the last columns show them. The sheet has one row per cell, with
    fractions of 1.
    """
    records, summary = measured.records, measured.summary
    score, comparison = primary_score(measured), primary_comparison(measured)
    marks, units = _marks(comparison), _units(measured)
    intervals = {
        column: method_intervals(measured, values_by_run(records, column[1], column[0])) for column in RESULT_COLUMNS
    }
    at_end, further = _last_epoch_intervals(measured), FurtherMetrics(measured)
    left_out = summary.left_out
    rows, notes, values = [], [], []
    for key in summary.methods:
        own = [record for record in records if record.method == key]
        if not own:
            continue
        suffix = "" if own[0].dimensions == _trained_dimensions(records) else f" ({own[0].dimensions}-dim)"
        sign = left_out[key].sign if key in left_out else ""
        cells = [_count(measured, key, units[key])]
        for column in RESULT_COLUMNS:
            mark = marks.get(key, "") if column == (score.embeddings, score.metric) else ""
            cells.append(measured_cell(intervals[column][key], PERCENT, mark))
        cells += [*(_last_epoch(own, at_end) if at_end else []), *further.cells(own)]
        flagged = "*" if any(run.flags for run in own) else ""
        row = Row.single(summary.methods[key] + suffix, cells, key, sign + flagged)
        rows.append(row)
        notes += [f"{sign} {row.head}: {left_out[key].note}"] if key in left_out else []
        notes += [f"* {row.head}: {run.name}, {flag}" for run in own for flag in run.flags]
        beside = [*[("last_epoch", metric) for metric in at_end], *further.keys]
        values += _values(row, own, beside, "search" if _is_by_search(measured, key) else "run")
    return Table(
        title=summary.title,
        caption=_caption(measured, comparison, last_epoch=bool(at_end)),
        columns=(*_columns(measured, last_epoch=bool(at_end)), *further.columns),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(values)),
        notes=(*notes, *further.note, *_table_notes(measured), *result_notes(measured, comparison)),
        remarks=single_searches(comparison, summary.methods, score),
    )


def missing_runs(measured: MeasuredExperiment) -> tuple[str, ...]:
    """Name the searches and runs that the experiment plans and the store lacks, as sentences without a full stop."""
    missing, searches = [], measured.summary.experiment.search.searches
    for key, own in _units(measured).items():
        title = measured.summary.methods[key]
        if not any(record.method == key for record in measured.records):
            missing.append(f"{title} has no finished run")
        elif own.missing == "searches missing":
            missing.append(f"{title} has {len(own.units)} of {searches} searches")
        elif own.missing:
            missing.append(f"{title} has {own.runs} of {measured.summary.runs[key]} runs")
    return tuple(missing)


def _units(measured: MeasuredExperiment) -> dict[str, MethodValues]:
    score = primary_score(measured)
    return unit_values(measured, values_by_run(measured.records, score.metric, score.embeddings))


def _is_by_search(measured: MeasuredExperiment, key: str) -> bool:
    """Whether a method's values are means of searches."""
    summary = measured.summary
    whole = summary.experiment.search.searches * summary.reproductions
    return unit_of(summary.experiment) == "search" and summary.runs[key] >= whole


def _count(measured: MeasuredExperiment, key: str, own: MethodValues) -> Cell:
    """The number of runs; of complete searches and their runs as in `3 × 5` if searches are repeated."""
    if _is_by_search(measured, key):
        return Cell(len(own.units), written=f"{len(own.units)} × {measured.summary.reproductions}")
    return Cell(own.runs, written=runs(own.runs) if unit_of(measured.summary.experiment) == "search" else "")


def _marks(comparison: ComparisonResult | None) -> dict[str, Mark]:
    """The marks of the primary score; none while nothing is claimed, or if methods are compared with a named one."""
    if comparison is None or comparison.interim or comparison.compare not in ("all", "best"):
        return {}
    others = [name for name in comparison.methods if name != comparison.highest]
    pairs = [pair for name in others if (pair := comparison.pair(comparison.highest, name))]
    if all(pair.untested for pair in pairs):
        return {}
    marks: dict[str, Mark] = {pair.b: "untested" if pair.untested else "tied" for pair in pairs if pair.better is None}
    return {comparison.highest: "best", **marks}


def _last_epoch_intervals(measured: MeasuredExperiment) -> dict[str, dict[str, Interval]]:
    """Means and intervals of the scores after the last epoch by metric and method; empty if no run has them."""
    at_end = [
        record.model_copy(update={"separated": record.last_epoch})
        for record in measured.records
        if record.last_epoch is not None
    ]
    if not at_end:
        return {}
    return {
        metric: method_intervals(measured, values_by_run(at_end, metric, "separated")) for metric in HEADLINE_METRICS
    }


def _last_epoch(own: Sequence[RunRecord], intervals: Mapping[str, Mapping[str, Interval]]) -> list[Cell]:
    """The scores after the last epoch; empty cells for a method without them."""
    known = sum(run.last_epoch is not None for run in own)
    note = f"({known} of {len(own)} runs)" if 0 < known < len(own) else ""
    return [measured_cell(by_method.get(own[0].method), PERCENT, note=note) for by_method in intervals.values()]


def _table_notes(measured: MeasuredExperiment) -> list[str]:
    notes, missing = mixed_origins(measured), missing_runs(measured)
    return [*notes, "Partial: " + "; ".join(missing) + "."] if missing else notes


def _columns(measured: MeasuredExperiment, *, last_epoch: bool) -> tuple[Column, ...]:
    results = [Column(HEADLINE_METRICS[metric], group=kind) for kind, metric in RESULT_COLUMNS]
    beside = [Column(title, group="last epoch") for title in HEADLINE_METRICS.values()] if last_epoch else []
    count = "searches × runs" if unit_of(measured.summary.experiment) == "search" else "n"
    return (Column(count), *results, *beside)


def _values(
    row: Row, own: Sequence[RunRecord], beside: Sequence[tuple[str, str]], unit: str
) -> list[tuple[Value, ...]]:
    """Return the sheet's rows of a method; `beside` has variant and metric of each cell that follows the results."""
    models, dimensions = len(own[0].fold_fingerprints), own[0].dimensions
    following = [cell for cell in zip(beside, cells_beside(row), strict=True) if not cell[1].empty]
    return [
        (
            *(row.key, variant, metric, dimensions * (models if variant == "concatenated" else 1)),
            *(cell.value, cell.half_width, cell.n, unit, len(own)),
        )
        for (variant, metric), cell in [*result_cells(row).items(), *following]
    ]


def _caption(measured: MeasuredExperiment, comparison: ComparisonResult | None, *, last_epoch: bool) -> str:
    records, summary = measured.records, measured.summary
    if not records:
        return "The store has no run of this experiment."
    first, dimensions = records[0], _trained_dimensions(records)
    folds = len(first.fold_fingerprints)
    at_end = "Last epoch: the same trainings at their end, without a choice of the epoch. " if last_epoch else ""
    return (
        f"Dataset {first.dataset}: {first.test_images} {samples_word(first.dataset)} of {first.test_classes} test "
        "classes, which are used neither in training nor in search. "
        f"Values are percentages: {_interval_words(summary)} "
        f"{origin_of_hyperparameters(first.protocol, summary.trials)} "
        f"Separated: mean of {folds} {dimensions}-dim models; concatenated: their {folds * dimensions}-dim "
        f"ensemble. {at_end}Base seed {first.seed}. {_compared(measured, comparison)}"
    )


def _interval_words(summary: ExperimentSummary) -> str:
    planned, searches = summary.reproductions, summary.experiment.search.searches
    over_runs = f"mean ± half width of the 95 % Student-t interval over n runs ({planned} planned)"
    match unit_of(summary.experiment):
        case "search":
            return (
                f"mean ± half width of the 95 % interval over the complete searches ({searches} planned), each with "
                f"{'one run' if planned == 1 else f'the mean of its {runs(planned)}'}. The variance between searches "
                "is pooled over the methods, or the method's own if that is larger."
            )
        case "single search":
            return (
                f"{over_runs} of the settings that one search of each method found. "
                "These intervals say nothing about another search."
            )
        case "run":
            return f"{over_runs}."


def _compared(measured: MeasuredExperiment, comparison: ComparisonResult | None) -> str:
    score = primary_score(measured)
    name = f"the primary score, {score.embeddings} {HEADLINE_METRICS[score.metric]}"
    if comparison is None or not comparison.pairs:
        return f"No two methods are compared in {name}."
    marked = "" if comparison.compare in ("all", "best") else ", so no highest mean is marked"
    compared = (
        f"Compared in {name}: {asked_pairs(comparison, measured.summary.methods)}{marked}. "
        "The other scores are secondary and not tested."
    )
    if not comparison.interim:
        return compared
    own = " A method without all its searches has no interval." if comparison.unit == "search" else ""
    return f"{compared} Interim: searches or runs are missing, so no value is marked.{own}"


def _trained_dimensions(records: Sequence[RunRecord]) -> int:
    """Return the dimensions of one fold's embedding. The untrained trunk has other dimensions and no search."""
    return next((record for record in records if record.hyperparameters), records[0]).dimensions
