"""Tables as HTML fragments."""

from html import escape

from reports.tables.cell_text import cell_text
from reports.tables.table import Cell, Column, Mark, Row, Table

_SIGNS: dict[Mark, str] = {"best": "<strong>%s</strong>", "tied": "<em>%s</em>", "untested": "%s?"}


def to_html(table: Table) -> str:
    """Write the table as an HTML fragment, with its caption and with its notes below it."""
    notes = [f"<li>{escape(note)}</li>" for note in (*table.notes, *table.remarks)]
    return "\n".join(
        [
            '<div class="result-table">',
            "<table>",
            f"<caption><strong>{escape(table.title)}</strong> {escape(table.full_caption)}</caption>",
            "<thead>",
            *_head(table),
            "</thead>",
            *(text for row in table.rows for text in _row(table, row)),
            "</table>",
            *(['<ul class="notes">', *notes, "</ul>"] if notes else []),
            "</div>",
            "",
        ]
    )


def _head(table: Table) -> list[str]:
    grouped = any(column.group for column in table.columns)
    tall = ' rowspan="2"' if grouped else ""
    wide = ' colspan="2"' if table.has_line_names else ""
    upper, lower = [f'<th scope="col"{tall}{wide}>{escape(table.first)}</th>'], []
    columns = iter(table.columns)
    for group, width in table.groups:
        grouped_columns = [next(columns) for _ in range(width)]
        if group:
            upper.append(f'<th scope="colgroup" colspan="{width}">{escape(group)}</th>')
            lower += [_column(column) for column in grouped_columns]
        else:
            upper += [_column(column, tall) for column in grouped_columns]
    return [f"<tr>{''.join(cells)}</tr>" for cells in (upper, lower) if cells]


def _column(column: Column, span: str = "") -> str:
    kind = ' class="number"' if column.numeric else ""
    return f'<th scope="col"{span}{kind}>{escape(column.name)}</th>'


def _row(table: Table, row: Row) -> list[str]:
    """Write a `<tbody>` for each row, so that the head of a row belongs to all its lines."""
    texts = ["<tbody>"]
    for line in row.lines:
        cells = []
        if line is row.lines[0]:
            several = len(row.lines) > 1
            scope = f'scope="rowgroup" rowspan="{len(row.lines)}"' if several else 'scope="row"'
            cells.append(f"<th {scope}>{escape(row.heads(line))}</th>")
        if table.has_line_names:
            cells.append(f'<th scope="row" class="line">{escape(line.name)}</th>')
        pairs = zip(line.cells, table.columns, strict=True)
        texts.append(f"<tr>{''.join([*cells, *(_cell(cell, column) for cell, column in pairs)])}</tr>")
    return [*texts, "</tbody>"]


def _cell(cell: Cell, column: Column) -> str:
    classes = ["number"] if column.numeric else []
    classes += [cell.kind] if cell.kind else []
    # The words of a verdict, such as `not-run`, are a class too, so that a style sheet can colour each verdict.
    classes += [str(cell.value).replace(" ", "-")] if cell.kind == "verdict" else []
    classes += [cell.mark] if cell.mark else []
    attribute = f' class="{escape(" ".join(classes))}"' if classes else ""
    text = _SIGNS.get(cell.mark, "%s") % escape(cell_text(cell))
    note = f' <span class="aside">{escape(cell.note)}</span>' if cell.note else ""
    return f"<td{attribute}>{text}{note}</td>"
