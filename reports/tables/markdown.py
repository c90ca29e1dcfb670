"""Tables as Markdown."""

import re

from reports.tables.cell_text import cell_text
from reports.tables.table import Cell, Mark, Table

_SIGNS: dict[Mark, tuple[str, str]] = {"best": ("**", "**"), "tied": ("*", "*"), "untested": ("", "?")}


def to_markdown(table: Table) -> str:
    """Write a pipe table with its title, caption and notes. Best values are bold, tied values italic."""
    names = [table.first, *([""] if table.has_line_names else [])]
    names += [" ".join(part for part in (column.group, column.name) if part) for column in table.columns]
    alignment = ["---"] * (len(names) - len(table.columns))
    alignment += ["--:" if column.numeric else "---" for column in table.columns]
    lines = [f"**{' '.join(table.title.split())}**", "", _piped(names), "|" + "|".join(alignment) + "|"]
    for row in table.rows:
        for line in row.lines:
            heads = [row.heads(line), *([line.name] if table.has_line_names else [])]
            lines.append(_piped([*heads, *(_cell(cell) for cell in line.cells)]))
    notes = [f"\n- {note}" for note in (*table.notes, *table.remarks)]
    return _without_html("\n".join([*lines, "", table.full_caption, *notes])) + "\n"


def _without_html(text: str) -> str:
    """Return a text in which no title or name is a tag of HTML, which Markdown would pass on."""
    return re.sub(r"<(?=[A-Za-z/!?])", r"\<", text)


def _piped(fields: list[str]) -> str:
    return "| " + " | ".join(" ".join(field.split()).replace("|", r"\|") for field in fields) + " |"


def _cell(cell: Cell) -> str:
    before, after = _SIGNS.get(cell.mark, ("", ""))
    return " ".join(part for part in (f"{before}{cell_text(cell)}{after}", cell.note) if part)
