"""A published table in the paper's own layout: under every published row our numbers and their verdicts."""

from collections.abc import Iterator

from reports.published.join import ComparedCell, ComparedRow, ComparedTable
from reports.tables import further_metrics
from reports.tables.table import Cell, Column, Line, NumberFormat, Row, Sheet, Table, Value
from results.published.tables import PublishedColumn

_DATASETS = {"cub200": "CUB200", "cars196": "Cars196", "sop": "SOP", "inshop": "In-Shop"}
_HEADER = (
    *("table", "row", "dataset", "metric", "kind", "printed", "printed_interval"),
    *("mean", "low", "high", "n", "verdict"),
)
_ONLY_JSON = ("method", "variant", "note", "source", "origin", "row_kind", "quoted_from")
_NOT_COMPARED = {"quoted", "source unclear", "method not in the suite", "cannot be determined"}
_NOT_RUN = "Not run: the store has no run that counts for a cell of this table. All values are as published."
_READING = (
    "First line: as published. Below it our runs: mean ± half width of the 95 % interval, number of runs in brackets "
    "(of complete searches, where the search was repeated), in the published unit; then the verdict. A published value "
    "is a measurement too. The verdict compares it with our 95 % prediction interval, t s sqrt(1/n + 1/m) around the "
    "mean of our n runs, where m is the number of runs behind the published value, 1 if the paper does not say: the "
    "value is inside it, or our interval lies above it or below it. Of faithful reproductions of the same settings 95 "
    "in 100 are inside. With a search of their own only 27 to 84 in 100 are, unless our search was repeated, so that "
    "its variation is in the interval."
)
# A published half width is shown with the digits that it has.
_PUBLISHED = NumberFormat(digits=6, significant=True)


def published_layout(table: ComparedTable) -> Table:
    """The table in the paper's layout. If nothing of it was run, the caption says so once, and no cell repeats it.

    Its sheet has one row per cell, in the published unit: percent for fractions. The columns from `mean` to `n` are
    empty where nothing was run.
    """
    published = table.published
    was_run = any(row.was_run for row in table.rows)
    reading = [_summary(table), _READING] if was_run else [_NOT_RUN]
    return Table(
        title=published.title,
        caption=" ".join([f"Published in: {published.paper}.", *reading]),
        columns=tuple(Column(metric_title(column), group=_group(table, column)) for column in published.columns),
        rows=tuple(_row(row, [row.cells[column] for column in published.columns], was_run) for row in table.rows),
        sheet=_sheet(table),
        notes=table.notes,
        remarks=tuple(_remarks(table)),
    )


def metric_title(column: PublishedColumn) -> str:
    """The metric as papers call it: Recall@1 of single networks, P@1 under MLRC."""
    if (column.metric, column.kind) == ("precision_at_1", "single"):
        return "R@1"
    return further_metrics.metric_title(column.metric)


def _group(table: ComparedTable, column: PublishedColumn) -> str:
    kinds = {other.kind for other in table.published.columns}
    name = _DATASETS[column.dataset]
    return f"{name}, {column.kind}" if len(kinds) > 1 else name


def _row(row: ComparedRow, cells: list[ComparedCell], table_was_run: bool) -> Row:
    if not table_was_run:
        return Row.single(row.label, [_published(cell) for cell in cells], row.published.key or "")
    lines = [Line(tuple(_published(cell) for cell in cells), "published")]
    if row.was_run:
        lines.append(Line(tuple(_ours(cell) for cell in cells), "ours"))
    verdicts = tuple(Cell(cell.verdict, kind="verdict") for cell in cells)
    return Row(row.label, (*lines, Line(verdicts, "verdict")), row.published.key or "")


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
    return Cell(ours.mean, ours.half_width, n=ours.n, note=f"({ours.n})", form=form, kind="measured")


def _sheet(table: ComparedTable) -> Sheet:
    rows = [_values(table, row, column, row.cells[column]) for row in table.rows for column in table.published.columns]
    return Sheet((*_HEADER, *_ONLY_JSON), tuple(rows), _ONLY_JSON)


def _values(table: ComparedTable, row: ComparedRow, column: PublishedColumn, cell: ComparedCell) -> tuple[Value, ...]:
    published, ours, origin = cell.published, cell.ours, cell.row_origin
    measured: tuple[Value, ...] = (None,) * 4
    if ours is not None:
        ends = [None if end is None else cell.scale * end for end in (ours.mean, ours.low, ours.high)]
        measured = (*ends, ours.n)
    return (
        *(table.published.name, row.label, column.dataset, column.metric, column.kind),
        *(published.as_published or None, published.plus_minus, *measured, cell.verdict),
        *(published.method, published.variant, published.note, published.source, cell.origin),
        *(origin.kind, origin.quoted_from),
    )


def _summary(table: ComparedTable) -> str:
    own = [cell.verdict for cell in table.cells if cell.verdict not in _NOT_COMPARED]
    run = [verdict for verdict in own if verdict != "not run"]
    counts = [f"{run.count(verdict)} {verdict}" for verdict in dict.fromkeys(run)]
    return f"{len(run)} of {len(own)} cells that can be reproduced were run: {', '.join(counts)}."


def _remarks(table: ComparedTable) -> list[str]:
    """Say why rows are not compared and how we read them, and repeat the notes on single values."""
    of_rows: dict[str, list[str]] = {}
    of_cells: dict[str, list[str]] = {}
    for row in table.rows:
        for column in table.published.columns:
            cell = row.cells[column]
            for sentence in _about(cell):
                of_rows.setdefault(sentence, []).append(row.label)
            if cell.published.note:
                name = f"{row.label}, {_group(table, column)} {metric_title(column)}"
                of_cells.setdefault(cell.published.note, []).append(name)
    remarks = [f"{sentence}: {', '.join(dict.fromkeys(rows))}." for sentence, rows in of_rows.items()]
    total = len(table.cells)
    return remarks + [
        f"{'; '.join(cells) if len(cells) <= 3 else f'{len(cells)} of {total} published values'}: {note}."
        for note, cells in of_cells.items()
    ]


def _about(cell: ComparedCell) -> Iterator[str]:
    origin = cell.row_origin
    if cell.verdict == "method not in the suite":
        yield "No method of ours"
    if origin.our_reading:
        yield f"Our reading, {origin.our_reading}"
    if origin.not_determined:
        yield f"Cannot be determined, {origin.not_determined}"
    if origin.kind == "quoted":
        yield f"Quoted by the paper from {origin.quoted_from}, so that our runs are no reproduction"
    if origin.kind == "unclear":
        yield "Text and code do not say who measured"
