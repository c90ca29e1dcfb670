"""A published table in the paper's own layout: under every published row our numbers and their verdicts."""

from reports.published.join import ComparedCell, ComparedRow, ComparedTable
from reports.tables import further_metrics
from reports.tables.table import Cell, Column, Line, NumberFormat, Row, Sheet, Table, Value
from results.published.rows import PublishedPrecision, precision_of
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
    "mean of our n runs, where m is the number of runs behind the published value: the value is inside it, or our "
    "interval lies above it or below it. Of faithful reproductions of the same settings 95 in 100 are inside. With a "
    "search of their own only 27 to 84 in 100 are, unless our search was repeated, so that its variation is in the "
    "interval."
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
    reading = [*_summary(table), _READING] if was_run else [_NOT_RUN]
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
    ours = None if cell.ours is None else cell.scaled(cell.ours)
    measured = (None,) * 4 if ours is None else (ours.mean, ours.low, ours.high, ours.n)
    published = cell.published
    position = (table.published.name, row.label, column.dataset, column.metric, column.kind)
    as_published = (published.as_published or None, published.plus_minus)
    origin = cell.row_origin
    measured_by = (None, None) if origin is None else (origin.kind, origin.quoted_from)
    source = (published.method, published.variant, published.note, published.source, cell.origin, *measured_by)
    return (*position, *as_published, *measured, cell.verdict, *source)


def _summary(table: ComparedTable) -> list[str]:
    verdicts = [cell.verdict for cell in table.cells]
    own = [kind for kind in verdicts if kind not in _NOT_COMPARED]
    run = [kind for kind in own if kind != "not run"]
    counts = [f"{run.count(kind)} {kind}" for kind in dict.fromkeys(run)]
    return [f"{len(run)} of {len(own)} cells that can be reproduced were run: {', '.join(counts)}."]


def _remarks(table: ComparedTable) -> list[str]:
    without = dict.fromkeys(
        row.label for row in table.rows if "method not in the suite" in {cell.verdict for cell in row.cells.values()}
    )
    remarks = [f"No method of ours: {', '.join(without)}."] if without else []
    remarks += [*_readings(table), *_quotations(table), *_precisions(table)]
    cells_by_note: dict[str, list[str]] = {}
    for row in table.rows:
        for column in table.published.columns:
            if note := row.cells[column].published.note:
                name = f"{row.label}, {_group(table, column)} {metric_title(column)}"
                cells_by_note.setdefault(note, []).append(name)
    total = len(table.cells)
    return remarks + [f"{_which(cells, total)}: {note}." for note, cells in cells_by_note.items()]


def _readings(table: ComparedTable) -> list[str]:
    rows = {(row.label, cell.row_origin): None for row in table.rows for cell in row.cells.values()}
    known = [(label, origin) for label, origin in rows if origin is not None]
    ours = [f"{label}: our reading, {origin.our_reading}." for label, origin in known if origin.our_reading]
    lost = [
        f"{label}: cannot be determined, {origin.not_determined}." for label, origin in known if origin.not_determined
    ]
    return [*ours, *lost]


def _quotations(table: ComparedTable) -> list[str]:
    sources: dict[str, list[str]] = {}
    unclear = []
    for row in table.rows:
        for origin in dict.fromkeys(cell.row_origin for cell in row.cells.values()):
            if origin is not None and origin.kind == "quoted":
                sources.setdefault(origin.quoted_from, []).append(row.label)
            elif origin is not None and origin.kind == "unclear":
                unclear.append(row.label)
    quoted = "; ".join(f"{', '.join(labels)} from {source}" for source, labels in sources.items())
    remarks = [f"Quoted by the paper, so our runs are no reproduction of them: {quoted}."] if quoted else []
    if unclear:
        remarks.append(f"Text and code do not say who measured {', '.join(dict.fromkeys(unclear))}.")
    return remarks


def _precisions(table: ComparedTable) -> list[str]:
    known: dict[PublishedPrecision, int] = {}
    for cell in table.cells:
        if cell.verdict not in _NOT_COMPARED and cell.row_origin is not None and cell.published.as_published:
            precision = precision_of(cell.published, cell.row_origin)
            known[precision] = known.get(precision, 0) + 1
    total = sum(known.values())
    return [f"{_share(count, total)}: {_precision(precision)}." for precision, count in known.items()]


def _precision(precision: PublishedPrecision) -> str:
    runs = (
        "the paper does not say how many runs are behind a value; each counts as one run (m = 1)"
        if precision.runs is None
        else f"m = {precision.runs}"
    )
    if precision.spread is None:
        return runs
    if precision.deviation_is_known:
        return f"{runs}; the ± is a {precision.spread}, and its deviation is pooled with that of our runs"
    return f"{runs}; the verdict does not use the ±, because its meaning or the number of runs is not stated"


def _share(count: int, total: int) -> str:
    return "Published values" if count == total else f"{count} of {total} published values"


def _which(cells: list[str], total: int) -> str:
    if len(cells) == total:
        return "All published values"
    return "; ".join(cells) if len(cells) <= 3 else f"{len(cells)} of {total} published values"
