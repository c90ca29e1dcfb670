"""Table of an experiment's results: one row per method, means over searches or runs with their intervals."""

from collections.abc import Mapping, Sequence

from reports.tables.differences import asked_pairs
from reports.tables.further_metrics import FurtherMetrics
from reports.tables.table import PERCENT, Cell, Column, Mark, Row, Sheet, Table, Value, measured_cell
from results.records.experiment_summary import ExperimentSummary
from results.records.records import RunRecord
from results.spec.data_choice import samples_word
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.comparison_result import ComparisonResult, MethodValues
from results.statistics.finding import titles_of
from results.statistics.findings import findings_of
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
from results.wording import counted

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
    left_out, titles, findings = summary.left_out, titles_of(measured), findings_of(measured)
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
        row = Row.single(titles[key] + suffix, cells, key, sign + flagged)
        rows.append(row)
        notes += [f"{sign} {row.head}: {left_out[key].note}"] if key in left_out else []
        beside = [*[("last_epoch", metric) for metric in at_end], *further.keys]
        values += _values(row, own, beside, "search" if _is_by_search(measured, key) else "run")
    return Table(
        title=summary.title,
        caption=_caption(measured, comparison),
        columns=(*_columns(measured, last_epoch=bool(at_end)), *further.columns),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(values)),
        notes=(
            *notes,
            *(finding.sentences for finding in findings if finding.level != "note"),
            *_single_searches(comparison, titles, score),
        ),
        remarks=(
            *_reading(measured, last_epoch=bool(at_end)),
            *further.note,
            *(finding.sentences for finding in findings if finding.level == "note"),
        ),
    )


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
    return Cell(own.runs, written=counted(own.runs, "run") if unit_of(measured.summary.experiment) == "search" else "")


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
        record.model_copy(update={"fold_scores": (record.last_epoch,)})
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


def _caption(measured: MeasuredExperiment, comparison: ComparisonResult | None) -> str:
    if not measured.records:
        return "The store has no run of this experiment."
    first, summary, score = measured.records[0], measured.summary, primary_score(measured)
    name = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}"
    compared = f"No two methods are compared in {name}."
    if comparison is not None and comparison.pairs:
        compared = f"Compared in the primary score, {name}: {asked_pairs(comparison, titles_of(measured))}."
        if comparison.interim:
            compared += " Interim: searches or runs are missing, so no value is marked."
    return (
        f"Dataset {first.dataset}: {first.test_images} {samples_word(first.dataset)} of {first.test_classes} test "
        f"classes. Percentages: mean ± half width of the 95 % interval over {_units_words(summary)}. {compared}"
    )


def _units_words(summary: ExperimentSummary) -> str:
    match unit_of(summary.experiment):
        case "search":
            return f"{summary.experiment.search.searches} searches"
        case "single search":
            return "n runs of the settings that one search found"
        case "run":
            return "n runs"


def _reading(measured: MeasuredExperiment, *, last_epoch: bool) -> list[str]:
    """How to read the columns and the intervals, and where the settings come from."""
    if not measured.records:
        return []
    summary, first, dimensions = measured.summary, measured.records[0], _trained_dimensions(measured.records)
    folds = len(first.fold_fingerprints)
    if summary.trials == 0:
        given = "Hyperparameters: given, not searched."
    else:
        given = f"Hyperparameters: best of {counted(summary.trials, 'trial')} by validation MAP@R."
    sentences = [
        f"{given} Separated: mean of {folds} {dimensions}-dim models; concatenated: their {folds * dimensions}-dim "
        f"ensemble. Base seed {first.seed}."
    ]
    if unit_of(summary.experiment) == "search":
        sentences.append(
            "An interval takes the mean of a search's runs as one value. Its variance is pooled over the methods, or "
            "the method's own if that is larger."
        )
    if last_epoch:
        sentences.append("Last epoch: the same trainings at their end, without a choice of the epoch.")
    return sentences


def _single_searches(
    comparison: ComparisonResult | None, titles: Mapping[str, str], score: PrimaryScore
) -> tuple[str, ...]:
    """The means of every method's complete searches in the primary score, if searches are repeated."""
    if comparison is None or comparison.unit != "search":
        return ()
    means = [
        f"{titles[key]} {', '.join(f'{100 * unit:.2f}' for unit in values.units)}"
        for key, values in comparison.values.items()
        if values.units and values.searched
    ]
    return (
        (f"Single searches, {score.embeddings} {HEADLINE_METRICS[score.metric]}: {'; '.join(means)}.",) if means else ()
    )


def _trained_dimensions(records: Sequence[RunRecord]) -> int:
    """Return the dimensions of one fold's embedding. The untrained trunk has other dimensions and no search."""
    return next((record for record in records if record.hyperparameters), records[0]).dimensions
