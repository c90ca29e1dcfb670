"""A published table beside our runs: every printed cell with our mean and interval, and where the printed value lies.

Cells that were not run stay empty and say so; nothing is ever filled in (`printed_conditions` says by what).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.published.eligibility import StoredExperiment, concerns, objections
from reports.tables.best_marks import column_marks
from reports.tables.table import Mark
from results.published.tables import PublishedCell, PublishedColumn, PublishedRow, PublishedTable
from results.statistics.comparisons import Verdict, verdict
from results.statistics.intervals import Interval, student_t_interval
from results.statistics.run_values import RunKey, Variant, value_of

COSTS_AND_STRUCTURE = {
    "spectral_decay",
    "density",
    "class_concentration_variance",
    "uniformity",
    "total_training_steps",
}
"""Metrics that are no part of 100, and that say nothing about which method is best."""


@dataclass(frozen=True)
class PrintedCell:
    """One printed number and ours.

    ours: over runs, in the units of the records (fractions of 1, steps); None if it was not run. origin: name of the
    experiment that the runs are from. verdict: where our interval lies by the printed value. mark: among our own
    results of the column.
    """

    published: PublishedCell
    ours: Interval | None
    origin: str | None
    verdict: Verdict
    mark: Mark = ""

    @property
    def scale(self) -> float:
        """What ours is to be multiplied by to be in the unit of the printed number: 100 for percent."""
        return 1.0 if self.published.metric in COSTS_AND_STRUCTURE else 100.0


@dataclass(frozen=True)
class PrintedRow:
    """label: as printed, with trunk, dimensions and setting where rows would otherwise look alike."""

    label: str
    published: PublishedRow
    cells: Mapping[PublishedColumn, PrintedCell]


@dataclass(frozen=True)
class PrintedTable:
    """A published table joined with our runs. notes: where they are from, which others there are that fill no cell."""

    published: PublishedTable
    rows: tuple[PrintedRow, ...]
    notes: tuple[str, ...]

    @property
    def cells(self) -> tuple[PrintedCell, ...]:
        """All cells, row by row."""
        return tuple(row.cells[column] for row in self.rows for column in self.published.columns)


@dataclass(frozen=True)
class _Found:
    origin: StoredExperiment
    values: Mapping[RunKey, float]


def join(table: PublishedTable, stored: Sequence[StoredExperiment]) -> PrintedTable:
    """The published table with what was measured.

    stored: the latest first. Of several experiments that could fill a cell the one with the most runs does, of equal
    ones the first; runs of different experiments are never put together.
    """
    relevant = [one for one in stored if concerns(table, one.name, one.measured.summary)]
    found = {
        (place, column): _best_known(table, row, row.cells[column], relevant)
        for place, row in enumerate(table.rows)
        for column in table.columns
    }
    marks = _marks(table, found)
    rows = []
    for place, (row, label) in enumerate(zip(table.rows, _labels(table), strict=True)):
        cells = {}
        for column in table.columns:
            own, cell = found[place, column], row.cells[column]
            ours = None if own is None else student_t_interval(list(own.values.values()))
            said = verdict(ours, cell.measure, cell.rounding)
            origin = None if own is None else own.origin.name
            cells[column] = PrintedCell(cell, ours, origin, said, marks.get((place, column), ""))
        rows.append(PrintedRow(label, row, cells))
    used = [own.origin for own in found.values() if own is not None]
    return PrintedTable(table, tuple(rows), tuple(_notes(table, relevant, used)))


def _best_known(
    table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: Sequence[StoredExperiment]
) -> _Found | None:
    candidates = []
    for one in stored:
        if _has_runs(one, cell) and not objections(table, row, cell, one):
            values = _values(one, cell)
            candidates += [_Found(one, values)] if values else []
    return max(candidates, key=lambda known: len(known.values), default=None)


def _has_runs(one: StoredExperiment, cell: PublishedCell) -> bool:
    return cell.key is not None and one.dataset == cell.dataset and bool(one.runs(cell.key))


def _values(one: StoredExperiment, cell: PublishedCell) -> dict[RunKey, float]:
    """By run; empty if any of them was not evaluated with the metric, since a part of the runs is another number."""
    variant: Variant = "concatenated" if cell.kind == "concatenated" else "separated"
    try:
        return {
            RunKey(run.dataset, run.seed, run.run): value_of(run, cell.metric, variant)
            for run in one.runs(cell.key or "")
        }
    except ValueError:
        return {}


def _marks(
    table: PublishedTable, found: Mapping[tuple[int, PublishedColumn], _Found | None]
) -> dict[tuple[int, PublishedColumn], Mark]:
    marks: dict[tuple[int, PublishedColumn], Mark] = {}
    for column in table.columns:
        if column.metric not in COSTS_AND_STRUCTURE:
            known = {place: own.values for place in range(len(table.rows)) if (own := found[place, column]) is not None}
            marks.update({(place, column): mark for place, mark in column_marks(known).items()})
    return marks


def _labels(table: PublishedTable) -> list[str]:
    """The rows' labels, told apart by trunk and dimensions where these vary, then by setting."""
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
    """Where our numbers are from, and what was run that is not what is printed."""
    names = sorted({one.name for one in used})
    notes = [f"Our runs are those of {', '.join(names)}."] if names else []
    said: dict[str, list[str]] = {}
    for one in stored:
        near = [
            (reasons, row.key)
            for row in table.rows
            for cell in row.cells.values()
            if _has_runs(one, cell) and (reasons := objections(table, row, cell, one))
        ]
        if near and not any(one is each for each in used):
            nearest = min((reasons for reasons, _ in near), key=len)
            methods = sorted({key for _, key in near if key})
            said.setdefault(f"not shown, {'; '.join(nearest)}", []).append(f"{one.name} ({', '.join(methods)})")
    return notes + [f"There are runs of {', '.join(which)}: {reason}." for reason, which in said.items()]
