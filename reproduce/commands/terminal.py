"""Tables for the terminal; what is only drawn needs no torch."""

from __future__ import annotations

import sys
from dataclasses import replace

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from reports.tables.table import Cell, Column, Drawing, Mark

_SIGNS: dict[Mark, str] = {"best": "**", "tied": "*"}
_HEADS = 32
"""Columns of the console that rows' heads are given at most, where there are too many columns."""


def show_drawing(drawing: Drawing, console: Console) -> None:
    """A drawn table; one that is too wide for the console comes in parts that are not, each with the rows' heads."""
    for columns in _parts(drawing, console.width):
        drawn = Table(title=escape(drawing.title))
        # Long heads are broken over lines, numbers never.
        drawn.add_column(escape(drawing.first), overflow="fold")
        if drawing.has_line_names:
            drawn.add_column("", no_wrap=True)
        for place in columns:
            column = drawing.columns[place]
            drawn.add_column(
                escape(_title(column)), justify="right" if column.numeric else "left", no_wrap=column.numeric
            )
        for row in drawing.rows:
            for line in row.lines:
                head = escape(row.head) if line is row.lines[0] else ""
                names = [escape(line.name)] if drawing.has_line_names else []
                cells = [_cell_text(line.cells[place], styled=console.is_terminal) for place in columns]
                drawn.add_row(head, *names, *cells, end_section=line is row.lines[-1] and len(row.lines) > 1)
        console.print(drawn)
    for note in (drawing.caption, drawing.legend, *drawing.notes, *drawing.remarks):
        if note:
            console.print(note, highlight=False, markup=False)


def _parts(drawing: Drawing, width: int) -> list[list[int]]:
    """The columns' places in as many parts as fit beside the rows' heads; groups of columns are kept whole if they fit.

    A drawing without columns has one empty part.
    """
    whole = width - _heads_width(drawing)
    parts: list[list[int]] = [[]]
    room, places = whole, iter(range(len(drawing.columns)))
    for _, count in drawing.groups:
        group = [next(places) for _ in range(count)]
        wide = sum(_width(drawing, place) for place in group)
        pieces = [group] if wide <= whole else [[place] for place in group]
        for piece in pieces:
            needed = sum(_width(drawing, place) for place in piece)
            if needed > room and parts[-1]:
                parts.append([])
                room = whole
            parts[-1] += piece
            room -= needed
    return parts


def _heads_width(drawing: Drawing) -> int:
    """Of what stands before the columns: long heads are broken over lines, names of lines are not."""
    names = [len(line.name) for row in drawing.rows for line in row.lines] if drawing.has_line_names else []
    heads = [len(drawing.first), *(len(row.head) for row in drawing.rows)]
    return 4 + min(_HEADS, max(heads)) + (3 + max(names) if names else 0)


def _width(drawing: Drawing, place: int) -> int:
    """Of a column, with the lines and spaces beside it."""
    cells = [_shown(line.cells[place]) for row in drawing.rows for line in row.lines]
    return 3 + max(len(text) for text in (*_title(drawing.columns[place]).splitlines(), *cells))


def _title(column: Column) -> str:
    """Narrow: a word on each line."""
    return "\n".join([*column.group.split(), *column.name.split()])


def _shown(cell: Cell) -> str:
    """A cell's text as wide as it can get: with the signs that marks have where there is no bold and no italic."""
    sign = _SIGNS.get(cell.mark, "") if cell.text else ""
    text = f"{sign}{cell.text.replace('± ', '±')}{'?' if cell.mark == 'untested' else sign}"
    return " ".join(part for part in (text, cell.aside) if part)


def _cell_text(cell: Cell, *, styled: bool) -> Text:
    if not styled or cell.mark not in _SIGNS:
        return Text(_shown(cell))
    return Text(_shown(replace(cell, mark="")), style={"best": "bold", "tied": "italic"}[cell.mark])


def output_console() -> Console:
    """Standard output: a table needs its columns, and a pipe or a log has no width of its own."""
    return Console() if sys.stdout.isatty() else Console(width=140)


def say(console: Console, text: str) -> None:
    """Plain text as it is: without colours, markup or added line breaks."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
