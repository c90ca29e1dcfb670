"""A published table in the paper's own layout: under every printed row our numbers and their verdicts."""

from dataclasses import asdict
from typing import Any

from reports.published.join import PrintedCell, PrintedRow, PrintedTable
from reports.tables.table import Cell, Column, Drawing, Line, Row, Sheet, Value
from results.published.tables import PublishedColumn
from results.statistics.intervals import Interval

_DATASETS = {"cub200": "CUB200", "cars196": "Cars196", "sop": "SOP", "inshop": "In-Shop"}
_METRICS = {
    "r_precision": "RP",
    "map_at_r": "MAP@R",
    "map@1000": "mAP@1000",
    "nmi": "NMI",
    "spectral_decay": "spectral decay",
    "density": "density",
    "class_concentration_variance": "concentration variance",
    "uniformity": "uniformity",
    "total_training_steps": "steps",
}
_HEADER = (
    *("table", "row", "dataset", "metric", "kind", "printed", "printed_interval"),
    *("mean", "low", "high", "n", "verdict", "mark"),
)
_READING = (
    "First line: as printed. Below it our runs: mean ± half width of the 95 % Student-t interval, number of runs in "
    "brackets, in the printed unit; then where our interval lies by the printed value: inside it, above it or below it."
)


def draw(table: PrintedTable) -> Drawing:
    """The table to be written in any format; its sheet has one row per cell, in the printed unit."""
    published = table.published
    columns = tuple(Column(metric_name(column), group=_group(table, column)) for column in published.columns)
    rows = tuple(_row(row, [row.cells[column] for column in published.columns]) for row in table.rows)
    return Drawing(
        title=published.title,
        caption=" ".join([f"Printed in: {published.paper}.", *_summary(table), _READING]),
        columns=columns,
        rows=rows,
        sheet=sheet_of(table),
        notes=table.notes,
        remarks=tuple(_remarks(table)),
    )


def sheet_of(table: PrintedTable) -> Sheet:
    """Every cell's values in the printed unit, percent for fractions; `mean` to `n` are empty where nothing was run."""
    values = [
        _values(table, row, column, row.cells[column]) for row in table.rows for column in table.published.columns
    ]
    return Sheet(_HEADER, tuple(values))


def cells_of(table: PrintedTable) -> list[dict[str, Any]]:
    """As `sheet_of`, each cell as keys and values, with the experiment that its runs are from and the printed notes."""
    rows = [dict(zip(_HEADER, values, strict=True)) for values in sheet_of(table).rows]
    for row, cell in zip(rows, table.cells, strict=True):
        own = asdict(cell.published)
        row |= {key: own[key] for key in ("method", "variant", "note", "source")} | {"origin": cell.origin}
    return rows


def metric_name(column: PublishedColumn) -> str:
    """As the papers print it: Recall@1 of single networks, P@1 under MLRC."""
    if column.metric == "precision_at_1":
        return "R@1" if column.kind == "single" else "P@1"
    return _METRICS.get(column.metric, column.metric.replace("recall", "R"))


def _group(table: PrintedTable, column: PublishedColumn) -> str:
    kinds = {each.kind for each in table.published.columns}
    name = _DATASETS[column.dataset]
    return f"{name}, {column.kind}" if len(kinds) > 1 else name


def _row(row: PrintedRow, cells: list[PrintedCell]) -> Row:
    lines = [Line(tuple(Cell(_printed(cell), kind="printed") for cell in cells), "printed")]
    if any(cell.ours for cell in cells):
        lines.append(Line(tuple(_ours(cell) for cell in cells), "ours"))
    verdicts = (Cell(cell.verdict, kind=f"verdict {cell.verdict.replace(' ', '-')}") for cell in cells)
    return Row(row.label, (*lines, Line(tuple(verdicts), "verdict")))


def _printed(cell: PrintedCell) -> str:
    published = cell.published
    if not published.printed:
        return "-"
    interval = published.printed_interval
    return published.printed if interval is None else f"{published.printed} ± {interval:g}"


def _ours(cell: PrintedCell) -> Cell:
    if cell.ours is None:
        return Cell(kind="measured")
    scaled = _scaled(cell.ours, cell.scale)
    form = "{:.2f}" if cell.scale != 1 else "{:,.0f}" if cell.published.printed.endswith("K") else "{:.3f}"
    mean, half = form.format(scaled.mean), scaled.half_width
    text = mean if half is None else f"{mean} ± {form.format(half)}"
    return Cell(text, cell.mark, f"({scaled.n})", "measured")


def _scaled(interval: Interval, scale: float) -> Interval:
    half = None if interval.half_width is None else scale * interval.half_width
    return Interval(scale * interval.mean, half, interval.n)


def _values(table: PrintedTable, row: PrintedRow, column: PublishedColumn, cell: PrintedCell) -> tuple[Value, ...]:
    ours = None if cell.ours is None else _scaled(cell.ours, cell.scale)
    measured = (None,) * 4 if ours is None else (ours.mean, ours.low, ours.high, ours.n)
    printed = (cell.published.printed or None, cell.published.printed_interval)
    place = (table.published.name, row.label, column.dataset, column.metric, column.kind)
    return (*place, *printed, *measured, cell.verdict, cell.mark or None)


def _summary(table: PrintedTable) -> list[str]:
    verdicts = [cell.verdict for cell in table.cells]
    run = len(verdicts) - verdicts.count("not run")
    if run == 0:
        return ["Nothing of it was run."]
    counts = [f"{verdicts.count(kind)} {kind}" for kind in dict.fromkeys(verdicts) if kind != "not run"]
    return [f"{run} of {len(verdicts)} cells were run: {', '.join(counts)}."]


def _remarks(table: PrintedTable) -> list[str]:
    """Rows that we have no method for, and what is known about how the printed numbers were read."""
    without = dict.fromkeys(row.label for row in table.rows if row.published.key is None)
    remarks = [f"No method of ours: {', '.join(without)}."] if without else []
    places: dict[str, list[str]] = {}
    for row in table.rows:
        for column in table.published.columns:
            if note := row.cells[column].published.note:
                places.setdefault(note, []).append(f"{row.label}, {_group(table, column)} {metric_name(column)}")
    whole = len(table.cells)
    return remarks + [f"{_where(found, whole)}: {note}." for note, found in places.items()]


def _where(found: list[str], whole: int) -> str:
    if len(found) == whole:
        return "All printed values"
    return "; ".join(found) if len(found) <= 3 else f"{len(found)} of {whole} printed values"
