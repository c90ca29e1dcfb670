"""The table writers, by the name of the format on the command line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from reports.tables.latex import to_latex
from reports.tables.table import Cell, Row, Table, Value, cell_text, half_width_text, value_text

if TYPE_CHECKING:
    from jinja2 import Template


def to_markdown(table: Table) -> str:
    """Write a pipe table with its title, caption and notes. Leading values are bold."""
    names = [" ".join(part for part in (column.group, column.name) if part) for column in table.columns]
    alignment = ["---", *("--:" if column.numeric else "---" for column in table.columns)]
    lines = [f"**{' '.join(table.title.split())}**", "", _piped([table.first, *names]), "|" + "|".join(alignment) + "|"]
    lines += [_piped([row.head + row.sign, *map(_markdown_cell, row.cells)]) for row in table.rows]
    notes = [f"\n- {note}" for note in (*table.notes, *table.remarks)]
    return _without_html("\n".join([*lines, "", table.full_caption, *notes])) + "\n"


def _without_html(text: str) -> str:
    """Return a text in which no title or name is a tag of HTML, which Markdown would pass on."""
    return re.sub(r"<(?=[A-Za-z/!?])", r"\<", text)


def _piped(fields: list[str]) -> str:
    return "| " + " | ".join(" ".join(field.split()).replace("|", r"\|") for field in fields) + " |"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell_text(cell)}**" if cell.leads else cell_text(cell)
    return " ".join(part for part in (text, cell.note) if part)


def to_csv(table: Table) -> str:
    """Write the table's sheet as CSV. Floating-point numbers keep all their digits."""
    buffer, sheet = io.StringIO(), table.sheet
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([sheet.header, *(map(_field, row) for row in sheet.rows)])
    return buffer.getvalue()


def to_json(table: Table) -> str:
    """Write the table's sheet as a JSON list with one object per row."""
    sheet = table.sheet
    rows = [dict(zip(sheet.header, values, strict=True)) for values in sheet.rows]
    return json.dumps(rows, indent=1) + "\n"


def _field(value: Value) -> str | int:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
        return f"'{value}"  # A spreadsheet would take it for a formula.
    return repr(value) if isinstance(value, float) else value


def to_html(table: Table) -> str:
    """Write the table as an HTML fragment with heading, caption and notes. The page shows it as it is.

    A table in which no row belongs to another is `sortable`, and its cells have their values for sorting.
    """
    return _html_template().render(table=table, cells=lambda row: _html_cells(table, row)) + "\n"


@cache
def _html_template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # No other format needs it.

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("table.html")


def _html_cells(table: Table, row: Row) -> Iterator[tuple[Cell, str, str, str]]:
    """Yield each cell with its classes, its value and what is beside it."""
    for cell, column in zip(row.cells, table.columns, strict=True):
        # The words of a verdict, such as `not-run`, are a class too, so that a style sheet can colour each verdict.
        verdict = str(cell.value).replace(" ", "-") if cell.kind == "verdict" else ""
        classes = filter(None, ("number" if column.numeric else "", cell.kind, verdict))
        beside = filter(None, (half_width_text(cell), cell.note))
        yield cell, " ".join(classes), value_text(cell), " ".join(beside)


WRITERS: dict[str, Callable[[Table], str]] = {
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
    "html": to_html,
    "json": to_json,
}
