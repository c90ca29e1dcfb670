"""The table writers, by the name of the format on the command line."""

import csv
import io
import json
import re
from collections.abc import Callable
from html import escape

from reports.tables.latex import to_latex
from reports.tables.table import Cell, Column, Row, Table, Value, cell_text, half_width_text, value_text


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
    sortable = ' class="sortable"' if not any(row.below for row in table.rows) else ""
    notes = [f"<li>{escape(note)}</li>" for note in (*table.notes, *table.remarks)]
    return "\n".join(
        [
            '<div class="result-table">',
            f"<h3>{escape(table.title)}</h3>",
            f'<div class="scroll" role="region" aria-label="{escape(table.title)}" tabindex="0">',
            f"<table{sortable}>",
            "<thead>",
            *_head(table),
            "</thead>",
            *(_html_row(table, row) for row in table.rows),
            "</table>",
            "</div>",
            f'<p class="caption">{escape(table.full_caption)}</p>',
            *(['<ul class="notes">', *notes, "</ul>"] if notes else []),
            "</div>",
            "",
        ]
    )


def _head(table: Table) -> list[str]:
    names = [f'<th scope="col">{escape(table.first)}</th>']
    names += [
        f'<th scope="col"{_class("number" if column.numeric else "")}>{escape(column.name)}</th>'
        for column in table.columns
    ]
    lower = f"<tr>{''.join(names)}</tr>"
    if not any(column.group for column in table.columns):
        return [lower]
    groups = [
        f'<th scope="colgroup" colspan="{width}">{escape(group)}</th>' if group else f'<td colspan="{width}"></td>'
        for group, width in table.groups
    ]
    return [f'<tr class="groups"><td></td>{"".join(groups)}</tr>', lower]


def _class(*names: str) -> str:
    given = " ".join(name for name in names if name)
    return f' class="{escape(given)}"' if given else ""


def _html_row(table: Table, row: Row) -> str:
    """Write a row as a `<tbody>`, which sorting moves as a whole."""
    head = f'<th scope="row"{_class("below" if row.below else "")}>{escape(row.head + row.sign)}</th>'
    cells = [_html_cell(cell, column) for cell, column in zip(row.cells, table.columns, strict=True)]
    return f"<tbody><tr>{head}{''.join(cells)}</tr></tbody>"


def _html_cell(cell: Cell, column: Column) -> str:
    # The words of a verdict, such as `not-run`, are a class too, so that a style sheet can colour each verdict.
    verdict = str(cell.value).replace(" ", "-") if cell.kind == "verdict" else ""
    text = escape(value_text(cell))
    text = f"<strong>{text}</strong>" if cell.leads else text
    beside = escape(" ".join(part for part in (half_width_text(cell), cell.note) if part))
    spread = f' <span class="spread">{beside}</span>' if beside else ""
    key = "" if cell.sort_key is None else escape(str(cell.sort_key))
    classes = _class("number" if column.numeric else "", cell.kind, verdict)
    return f'<td{classes} data-sort="{key}">{text}{spread}</td>'


WRITERS: dict[str, Callable[[Table], str]] = {
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
    "html": to_html,
    "json": to_json,
}
