"""A published table beside our runs: every published cell with our mean, our interval and a verdict.

Cells that were not run stay empty and say so; nothing is ever filled in (`eligibility` says which runs count). No
method is marked as the best: a column can hold runs of several experiments, and methods are compared within one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.published.eligibility import StoredExperiment, concerns, models_of, objections
from results.published.rows import RowOrigin, published_mean, row_origin
from results.published.tables import PublishedCell, PublishedColumn, PublishedRow, PublishedTable
from results.statistics.finding import origin_findings
from results.statistics.intervals import Interval, student_t_interval
from results.statistics.primary_comparison import method_intervals, unit_of
from results.statistics.published_verdict import PublishedVerdict, published_verdict
from results.statistics.run_values import EmbeddingKind, RunKey, by_search, value_of
from results.statistics.search_findings import carried_choice

_WITHOUT_COMPARISON: Mapping[str, PublishedVerdict] = {"quoted": "quoted", "unclear": "source unclear"}


@dataclass(frozen=True)
class ComparedCell:
    """One published number and ours.

    Attributes:
        row_origin: Who measured the published number.
        ours: Over runs, or over complete searches where they are repeated, in the units of the records (fractions of 1,
            steps); None if it was not run.
        origin: The experiment that our runs are of.
        verdict: Where our prediction interval lies by the published value.
    """

    published: PublishedCell
    row_origin: RowOrigin
    ours: Interval | None
    origin: str | None
    verdict: PublishedVerdict

    @property
    def scale(self) -> float:
        """Factor that brings ours to the unit of the published number: 100 for percent."""
        return 1 / self.published.unit


@dataclass(frozen=True)
class ComparedRow:
    """A published row. label: as published, with trunk, dimensions and setting where labels would be equal."""

    label: str
    published: PublishedRow
    cells: Mapping[PublishedColumn, ComparedCell]

    @property
    def was_run(self) -> bool:
        """Whether any of its cells was run."""
        return any(cell.ours for cell in self.cells.values())


@dataclass(frozen=True)
class ComparedTable:
    """A published table beside our runs. notes: where the runs are from, and which other runs fill no cell."""

    published: PublishedTable
    rows: tuple[ComparedRow, ...]
    notes: tuple[str, ...]

    @property
    def cells(self) -> tuple[ComparedCell, ...]:
        """All cells, row by row."""
        return tuple(row.cells[column] for row in self.rows for column in self.published.columns)


_CellRuns = tuple[StoredExperiment, Mapping[RunKey, float]]
"""The experiment that fills a cell, with the values of its runs."""


def join(table: PublishedTable, stored: Sequence[StoredExperiment]) -> ComparedTable:
    """The published table with what was measured.

    If several experiments could fill a cell, the one with the most runs does, and among equal ones the first. Runs of
    different experiments are never put together.

    Args:
        stored: Experiments with runs, the latest first.
    """
    relevant = [one for one in stored if concerns(table, one.name, one.measured.summary)]
    runs = {
        (place, column): _most_runs(table, row, row.cells[column], relevant)
        for place, row in enumerate(table.rows)
        for column in table.columns
    }
    rows = []
    for place, (row, label) in enumerate(zip(table.rows, _labels(table), strict=True)):
        cells = {column: _compared(table, row, row.cells[column], runs[place, column]) for column in table.columns}
        rows.append(ComparedRow(label, row, cells))
    used = [cell_runs[0] for cell_runs in runs.values() if cell_runs is not None]
    return ComparedTable(table, tuple(rows), tuple(_notes(table, relevant, used)))


def _compared(table: PublishedTable, row: PublishedRow, cell: PublishedCell, runs: _CellRuns | None) -> ComparedCell:
    origin = row_origin(table.name, row, cell.dataset)
    without: PublishedVerdict | None = _WITHOUT_COMPARISON.get(origin.kind)
    if row.key is None:
        without = "cannot be determined" if origin.not_determined else "method not in the suite"
    published = published_mean(cell, origin)
    if runs is None:
        return ComparedCell(cell, origin, None, None, without or published_verdict(None, published))
    experiment, values = runs
    searches = _complete_searches(experiment, values)
    verdict = without or published_verdict(searches, published)
    return ComparedCell(cell, origin, _interval(experiment, cell, searches), experiment.name, verdict)


def _complete_searches(one: StoredExperiment, values: Mapping[RunKey, float]) -> list[list[float]]:
    """The values by search: of the complete ones if searches are repeated and any is complete."""
    searches, summary = list(by_search(values).values()), one.measured.summary
    complete = [runs for runs in searches if len(runs) >= summary.reproductions]
    return complete if complete and unit_of(summary.experiment) == "search" else searches


def _interval(one: StoredExperiment, cell: PublishedCell, searches: Sequence[Sequence[float]]) -> Interval:
    """Our mean with the interval of the experiment's own table, or its own if the table does not have the method."""
    if cell.key in one.measured.summary.methods:
        values = {key: _values(one, cell, key) for key in one.measured.summary.methods}
        return method_intervals(one.measured, {key: own for key, own in values.items() if own})[cell.key]
    return student_t_interval([float(np.mean(runs)) for runs in searches] if len(searches) > 1 else searches[0])


def _most_runs(
    table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: Sequence[StoredExperiment]
) -> _CellRuns | None:
    """The runs that fill a cell; None for a row that the paper did not measure itself."""
    if row_origin(table.name, row, cell.dataset).kind != "measured":
        return None
    candidates = []
    for one in stored:
        if _has_runs(one, cell) and not _objections(table, row, cell, one):
            values = _values(one, cell, cell.key or "")
            candidates += [(one, values)] if values else []
    return max(candidates, key=lambda known: len(known[1]), default=None)


def _has_runs(one: StoredExperiment, cell: PublishedCell) -> bool:
    return cell.key is not None and one.dataset == cell.dataset and bool(one.runs(cell.key))


def _objections(table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: StoredExperiment) -> list[str]:
    return objections(table, row, cell, stored, models_of(stored.runs(cell.key or "")[0]))


def _values(one: StoredExperiment, cell: PublishedCell, key: str) -> dict[RunKey, float]:
    """A method's values of the cell's metric by run.

    Empty if any run was not evaluated with the metric, since a part of the runs is another number.
    """
    kind: EmbeddingKind = "concatenated" if cell.kind == "concatenated" else "separated"
    try:
        return {
            RunKey(run.dataset, run.seed, run.run, run.search): value_of(run, cell.metric, kind)
            for run in one.runs(key)
        }
    except ValueError:
        return {}


def _labels(table: PublishedTable) -> list[str]:
    trunks, sizes = {row.trunk for row in table.rows}, {row.dimensions for row in table.rows}
    labels = []
    for row in table.rows:
        parts = [row.trunk] if len(trunks) > 1 and row.trunk else []
        parts += [str(row.dimensions)] if len(sizes) > 1 and row.dimensions else []
        labels.append(f"{row.label} ({', '.join(parts)})" if parts else row.label)
    settings = [row.setting.removeprefix("standard").lstrip(" ,") for row in table.rows]
    return [
        f"{label}, {setting}" if setting and labels.count(label) > 1 else label
        for label, setting in zip(labels, settings, strict=True)
    ]


def _notes(table: PublishedTable, stored: Sequence[StoredExperiment], used: Sequence[StoredExperiment]) -> list[str]:
    names = sorted({one.name for one in used})
    notes = [f"Our runs are those of {', '.join(names)}."] if names else []
    findings = origin_findings(*{id(one): one.measured for one in used}.values())
    notes += [finding.sentences for finding in findings]
    notes += dict.fromkeys(note for one in used for note in carried_choice(one.measured.summary))
    said: dict[str, list[str]] = {}
    for one in stored:
        near = [
            (reasons, row.key)
            for row in table.rows
            for cell in row.cells.values()
            if _has_runs(one, cell) and (reasons := _objections(table, row, cell, one))
        ]
        if near and not any(one is origin for origin in used):
            nearest = min((reasons for reasons, _ in near), key=len)
            methods = sorted({key for _, key in near if key})
            said.setdefault(f"not shown, {'; '.join(nearest)}", []).append(f"{one.name} ({', '.join(methods)})")
    return notes + [f"There are runs of {', '.join(which)}: {reason}." for reason, which in said.items()]
