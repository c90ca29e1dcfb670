"""A published table beside our runs, in the paper's layout: every cell with our mean, our interval and a verdict.

Cells that were not run stay empty and say so; nothing is ever filled in (`eligibility` says which runs count). No
method is marked as the best: a column can hold runs of several experiments, and methods are compared within one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.published.eligibility import StoredExperiment, concerns, objections_to_runs
from reports.tables.result_table import metric_title
from reports.tables.table import Cell, Column, Row, Sheet, Table, Value
from results.answer.answer_question import intervals_on, runs_on
from results.answer.intervals import Interval, PublishedVerdict, published_verdict, student_t_interval
from results.findings.origin import origin_findings
from results.findings.search import carried_choice
from results.numbers import NumberFormat
from results.published.tables import PublishedCell, PublishedColumn, PublishedRow, PublishedTable
from results.wording import counted, verb

_DATASETS = {"cub200": "CUB200", "cars196": "Cars196", "sop": "SOP", "inshop": "In-Shop"}
_HEADER = (
    *("table", "row", "dataset", "metric", "kind", "printed", "printed_interval"),
    *("mean", "low", "high", "n", "verdict", "method", "origin", "row_kind", "quoted_from"),
)
_NOT_COMPARED = {"quoted", "source unclear", "method not in the suite", "cannot be determined"}
_NOT_RUN = "Not run: the store has no run that counts for a cell of this table. All values are as published."
_READING = (
    "First line: as published. Below it our runs: mean ± half width of the 95 % interval, number of runs in brackets "
    "(of complete searches, where the search was repeated), in the published unit; then the verdict. It compares the "
    "published value with our 95 % prediction interval, t s sqrt(1/n + 1/m) around the mean of our n runs, where m is "
    "the number of runs behind the published value, 1 if the paper does not say: the value is inside it, or our "
    "interval lies above it or below it. Rows without a verdict were not run. Of faithful reproductions of the same "
    "settings 95 in 100 are inside. With a search of their own only 27 to 84 in 100 are, unless ours was repeated."
)
# A published half width is shown with the digits that it has.
_PUBLISHED = NumberFormat(digits=6, significant=True)
_WITHOUT_COMPARISON: Mapping[str, PublishedVerdict] = {"quoted": "quoted", "unclear": "source unclear"}


@dataclass(frozen=True)
class ComparedCell:
    """One published number and ours.

    Attributes:
        ours: Over runs, or over complete searches where they are repeated, in the units of the records (fractions of 1,
            steps); None if it was not run.
        origin: The experiment that our runs are of.
        verdict: Where our prediction interval lies by the published value.
    """

    published: PublishedCell
    ours: Interval | None
    origin: str | None
    verdict: PublishedVerdict

    @property
    def scale(self) -> float:
        """Factor that brings ours to the unit of the published number: 100 for percent."""
        return 1 / self.published.unit


@dataclass(frozen=True)
class ComparedRow:
    """A published row. label: as published; where two would be equal, with trunk, dimensions and setting."""

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


_CellRuns = tuple[StoredExperiment, list[list[float]]]
"""The experiment that fills a cell, with the values of its runs by search."""


def join(table: PublishedTable, stored: Sequence[StoredExperiment]) -> ComparedTable:
    """The published table with what was measured.

    If several experiments could fill a cell, the one with the most runs does, and among equal ones the first. Runs of
    different experiments are never put together.

    Args:
        stored: Experiments with runs, the latest first.
    """
    relevant = [one for one in stored if concerns(table, one.name, one.measured.plan)]
    rows, used = [], []
    for row, label in zip(table.rows, _labels(table), strict=True):
        cells = {}
        for column in table.columns:
            runs = _most_runs(table, row, row.cells[column], relevant)
            used += [runs[0]] if runs else []
            cells[column] = _compared(row, row.cells[column], runs)
        rows.append(ComparedRow(label, row, cells))
    return ComparedTable(table, tuple(rows), tuple(_notes(table, relevant, used)))


def _compared(row: PublishedRow, cell: PublishedCell, runs: _CellRuns | None) -> ComparedCell:
    without: PublishedVerdict | None = _WITHOUT_COMPARISON.get(cell.origin.kind)
    if row.key is None:
        without = "cannot be determined" if cell.origin.not_determined else "method not in the suite"
    if runs is None:
        return ComparedCell(cell, None, None, without or published_verdict(None, cell.mean))
    one, searches = runs
    complete = [values for values in searches if len(values) >= one.measured.plan.reproductions]
    searches = complete if complete and one.answer.sample.of_searches else searches
    if row.key in one.answer.titles:
        score = cell.column.metric, _kind(cell.column)
        ours = intervals_on(one.answer, [score])[score][row.key]
    else:  # The experiment's own table does not have the method.
        ours = student_t_interval([float(np.mean(values)) for values in searches] if searches[1:] else searches[0])
    return ComparedCell(cell, ours, one.name, without or published_verdict(searches, cell.mean))


def _most_runs(
    table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: Sequence[StoredExperiment]
) -> _CellRuns | None:
    """The runs that fill a cell; None for a row that the paper did not measure itself."""
    if cell.origin.kind != "measured":
        return None
    key, candidates = row.key or "", list[_CellRuns]()
    for one in (one for one in stored if objections_to_runs(table, row, cell, one) == []):
        values = runs_on(one.answer, cell.column.metric, _kind(cell.column)).get(key, {})
        # If a run was not evaluated with the metric, the others are another number.
        if values and sum(map(len, values.values())) == len(one.runs(key)):
            candidates.append((one, list(values.values())))
    return max(candidates, key=lambda runs: sum(map(len, runs[1])), default=None)


def _kind(column: PublishedColumn) -> str:
    return "concatenated" if column.kind == "concatenated" else "separated"


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
    notes += dict.fromkeys(note for one in used for note in carried_choice(one.measured.plan))
    not_shown: dict[str, list[str]] = {}
    for one in stored:
        near = [
            (reasons, row.key)
            for row in table.rows
            for cell in row.cells.values()
            if (reasons := objections_to_runs(table, row, cell, one))
        ]
        if near and not any(one is origin for origin in used):
            nearest = min((reasons for reasons, _ in near), key=len)
            methods = sorted({key for _, key in near if key})
            not_shown.setdefault(f"not shown, {'; '.join(nearest)}", []).append(f"{one.name} ({', '.join(methods)})")
    return notes + [f"There are runs of {', '.join(which)}: {reason}." for reason, which in not_shown.items()]


def published_layout(table: ComparedTable) -> Table:
    """The table in the paper's layout. If nothing of it was run, the caption says so once, and no cell repeats it.

    Its sheet has one row per cell, in the published unit: percent for fractions. The columns from `mean` to `n` are
    empty where nothing was run.
    """
    published = table.published
    was_run = any(row.was_run for row in table.rows)
    reading = [_summary(table), _READING] if was_run else [_NOT_RUN]
    columns = [Column(_column_title(column), group=_group(table, column)) for column in published.columns]
    return Table(
        title=published.title,
        caption=" ".join([f"Published in: {published.paper}.", *reading]),
        columns=tuple(columns),
        rows=tuple(line for row in table.rows for line in _rows(row, row.cells.values(), was_run)),
        own_sheet=_sheet(table),
        notes=table.notes,
        remarks=(f"`reproduce coverage {published.name}` says why rows have no verdict, and how we read them.",),
    )


def _column_title(column: PublishedColumn) -> str:
    """The metric as papers call it: Recall@1 of single networks, P@1 under MLRC."""
    if (column.metric, column.kind) == ("precision_at_1", "single"):
        return "R@1"
    return metric_title(column.metric)


def _group(table: ComparedTable, column: PublishedColumn) -> str:
    kinds = {other.kind for other in table.published.columns}
    name = _DATASETS[column.dataset]
    return f"{name}, {column.kind}" if len(kinds) > 1 else name


def _rows(row: ComparedRow, cells: Collection[ComparedCell], table_was_run: bool) -> Iterator[Row]:
    key = row.published.key or ""
    yield Row(row.label, list(map(_published, cells)), key)
    if row.was_run:
        yield Row("ours", list(map(_ours, cells)), key, below=True)
    if table_was_run and any(cell.verdict != "not run" for cell in cells):
        yield Row("verdict", [Cell(cell.verdict, kind="verdict") for cell in cells], key, below=True)


def _published(cell: ComparedCell) -> Cell:
    published = cell.published
    if not published.as_published:
        return Cell(written="-", kind="published")
    half_width = published.plus_minus
    return Cell(published.value, half_width, form=_PUBLISHED, kind="published", written=published.as_published)


def _ours(cell: ComparedCell) -> Cell:
    ours = cell.ours
    if ours is None:
        return Cell(kind="measured")
    if cell.scale != 1:
        form = NumberFormat(digits=2, scale=cell.scale)
    else:
        steps = cell.published.as_published.endswith("K")
        form = NumberFormat(digits=0, thousands=True) if steps else NumberFormat(digits=3)
    return Cell(ours.mean, ours.half_width, note=f"({ours.n})", form=form, kind="measured")


def _sheet(table: ComparedTable) -> Sheet:
    lines = []
    for row in table.rows:
        for column, cell in row.cells.items():
            published, ours, origin = cell.published, cell.ours, cell.published.origin
            measured: tuple[Value, ...] = (None,) * 4
            if ours is not None:
                ends = [None if end is None else cell.scale * end for end in (ours.mean, ours.low, ours.high)]
                measured = (*ends, ours.n)
            where = (table.published.name, row.label, column.dataset, column.metric, column.kind)
            printed = (published.as_published or None, published.plus_minus)
            about = (row.published.key, cell.origin, origin.kind, origin.quoted_from)
            lines.append((*where, *printed, *measured, cell.verdict, *about))
    return Sheet(_HEADER, tuple(lines))


def _summary(table: ComparedTable) -> str:
    own = [cell.verdict for cell in table.cells if cell.verdict not in _NOT_COMPARED]
    run = [verdict for verdict in own if verdict != "not run"]
    counts = [f"{run.count(verdict)} {verdict}" for verdict in dict.fromkeys(run)]
    of = f"{len(run)} of {counted(len(own), 'cell')} that can be reproduced {verb(len(run), 'were')} run"
    return f"{of}: {', '.join(counts)}."
