"""Tables in the terminal, without torch."""

from __future__ import annotations

import sys
from dataclasses import replace

from rich.console import Console
from rich.markup import escape
from rich.table import Table as TerminalTable
from rich.text import Text

from reports.tables.cell_text import cell_text
from reports.tables.table import Cell, Column, Mark, Table

_SIGNS: dict[Mark, str] = {"best": "**", "tied": "*"}
_HEADS = 32
"""Columns of the console that rows' heads are given at most, where there are too many columns."""


def show_table(table: Table, console: Console) -> None:
    """Prints a table. A table that is too wide is split into parts that fit, each with the rows' heads."""
    for columns in _parts(table, console.width):
        drawn = TerminalTable(title=escape(table.title))
        # Long heads are broken over lines, numbers never.
        drawn.add_column(escape(table.first), overflow="fold")
        if table.has_line_names:
            drawn.add_column("", no_wrap=True)
        for place in columns:
            column = table.columns[place]
            drawn.add_column(
                escape(_title(column)), justify="right" if column.numeric else "left", no_wrap=column.numeric
            )
        for row in table.rows:
            for line in row.lines:
                head = escape(row.heads(line))
                names = [escape(line.name)] if table.has_line_names else []
                cells = [_styled_text(line.cells[place], styled=console.is_terminal) for place in columns]
                drawn.add_row(head, *names, *cells, end_section=line is row.lines[-1] and len(row.lines) > 1)
        console.print(drawn)
    for note in (table.caption, table.legend, *table.notes, *table.remarks):
        if note:
            console.print(note, highlight=False, markup=False)


def _parts(table: Table, width: int) -> list[list[int]]:
    """The columns' places in as many parts as fit beside the rows' heads; groups of columns are kept whole if they fit.

    A table without columns has one empty part.
    """
    whole = width - _heads_width(table)
    parts: list[list[int]] = [[]]
    room, places = whole, iter(range(len(table.columns)))
    for _, count in table.groups:
        group = [next(places) for _ in range(count)]
        wide = sum(_width(table, place) for place in group)
        pieces = [group] if wide <= whole else [[place] for place in group]
        for piece in pieces:
            needed = sum(_width(table, place) for place in piece)
            if needed > room and parts[-1]:
                parts.append([])
                room = whole
            parts[-1] += piece
            room -= needed
    return parts


def _heads_width(table: Table) -> int:
    """Of what stands before the columns: long heads are broken over lines, names of lines are not."""
    names = [len(line.name) for line in table.lines] if table.has_line_names else []
    heads = [len(table.first), *(len(row.head + row.sign) for row in table.rows)]
    return 4 + min(_HEADS, max(heads)) + (3 + max(names) if names else 0)


def _width(table: Table, place: int) -> int:
    """Of a column, with the lines and spaces beside it."""
    cells = [_shown(line.cells[place]) for line in table.lines]
    return 3 + max(len(text) for text in (*_title(table.columns[place]).splitlines(), *cells))


def _title(column: Column) -> str:
    """Narrow: a word on each line."""
    return "\n".join([*column.group.split(), *column.name.split()])


def _shown(cell: Cell) -> str:
    """A cell's text at its widest: with the signs that stand for marks where there is no bold and no italic."""
    text = cell_text(cell).replace("± ", "±")
    sign = _SIGNS.get(cell.mark, "") if text else ""
    marked = f"{sign}{text}{'?' if cell.mark == 'untested' else sign}"
    return " ".join(part for part in (marked, cell.note) if part)


def _styled_text(cell: Cell, *, styled: bool) -> Text:
    if not styled or cell.mark not in _SIGNS:
        return Text(_shown(cell))
    return Text(_shown(replace(cell, mark="")), style={"best": "bold", "tied": "italic"}[cell.mark])


def output_console() -> Console:
    """Standard output: a table needs its columns, and a pipe or a log has no width of its own."""
    return Console() if sys.stdout.isatty() else Console(width=140)


def say(console: Console, text: str) -> None:
    """Plain text as it is: without colours, markup or added line breaks."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
