"""Prints tables and plain text in the terminal, without torch."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

if TYPE_CHECKING:
    from reports.tables.table import Cell, Column, Table
    from results.store.experiment_results import MeasuredExperiment

_WIDTH_OF_FILES = 1000
"""Width of pipes and files, in which no number may be broken or cut."""
_WIDTH_OF_TABLES = 140
"""A results table that is wider is split in pipes and files too, since people read it there."""
_MOST_ROWS, _MOST_LINES = 7, 12
"""Methods, and lines of table and notes, at the end of a run."""
_MAX_HEAD_WIDTH = 32
"""Row heads get at most this many characters when a table has to be split."""


def show_table(table: Table, console: Console) -> None:
    """Print a table. A table that is too wide is split into parts that fit; each repeats what tells the rows apart."""
    width = console.width if console.is_terminal else _WIDTH_OF_TABLES
    for columns in _parts(table, width):
        drawn = TerminalTable(title=Text(table.title, style="table.title"))
        # Long heads are broken over several lines; numbers never are.
        drawn.add_column(Text(table.first), overflow="fold")
        for index in columns:
            column = table.columns[index]
            drawn.add_column(
                Text(_title(column)), justify="right" if column.numeric else "left", no_wrap=column.numeric
            )
        for row, below in zip_longest(table.rows, table.rows[1:]):
            cells = [_styled_text(row.cells[index], styled=console.is_terminal) for index in columns]
            ends = row.below and (below is None or not below.below)
            drawn.add_row(Text(("  " if row.below else "") + row.head + row.sign), *cells, end_section=ends)
        console.print(drawn)
    for note in (table.caption, table.legend, *table.notes, *table.remarks):
        if note:
            console.print(note, highlight=False, markup=False, width=width)


def show_answer(measured: MeasuredExperiment, console: Console) -> None:
    """Print an experiment's headline, a line for each comparison, and at most twelve lines of table and notes."""
    # Imports scipy, which most commands do not need.
    from reports.headline import comparison_lines, headline, short_table
    from results.statistics.findings import findings_of
    from results.wording import counted

    say(console, headline(measured))
    for line in comparison_lines(measured):
        say(console, f"- {line}")
    table = short_table(measured)
    shown = table.rows[:_MOST_ROWS]
    _show_short(replace(table, rows=shown), console)
    more = {"method": len(table.rows) - len(shown)}
    findings = [one for one in findings_of(measured) if one.level != "note"]
    room = _MOST_LINES - 2 - len(shown)
    for finding in findings[:room]:
        say(console, finding.text)
    more["note"] = len(findings) - room
    if hidden := [counted(count, f"more {thing}") for thing, count in more.items() if count > 0]:
        say(console, f"the page has {' and '.join(hidden)}")


def show_interim(measured: MeasuredExperiment, rounds: int, console: Console) -> None:
    """Print the methods so far, when each has some of its searches; what they show is said at the end."""
    from reports.headline import short_table

    searches = measured.summary.experiment.search.searches
    say(console, f"After {rounds} of {searches} searches of each method:")
    table = short_table(measured)
    _show_short(replace(table, rows=table.rows[:_MOST_ROWS]), console)


def _show_short(table: Table, console: Console) -> None:
    drawn = TerminalTable(box=None, padding=(0, 2, 0, 0))
    drawn.add_column(Text(table.first))
    for column in table.columns:
        drawn.add_column(Text(" ".join((column.group, column.name)).strip()), justify="right", no_wrap=True)
    for row in table.rows:
        cells = [_styled_text(cell, styled=console.is_terminal) for cell in row.cells]
        drawn.add_row(Text(row.head + row.sign), *cells)
    console.print(drawn)


def _parts(table: Table, width: int) -> list[list[int]]:
    """Split the columns of a table into parts that fit into the console beside the row heads; return their indices.

    A group of columns stays together if it fits. A table without columns gives one empty part.
    """
    repeated = list(range(table.repeated))
    part_width = width - _heads_width(table) - sum(_column_width(table, index) for index in repeated)
    parts: list[list[int]] = [[*repeated]]
    room, indices = part_width, iter(range(len(repeated), len(table.columns)))
    for _, count in table.groups[len(repeated) :]:
        group = [next(indices) for _ in range(count)]
        group_width = sum(_column_width(table, index) for index in group)
        pieces = [group] if group_width <= part_width else [[index] for index in group]
        for piece in pieces:
            needed = sum(_column_width(table, index) for index in piece)
            if needed > room and len(parts[-1]) > len(repeated):
                parts.append([*repeated])
                room = part_width
            parts[-1] += piece
            room -= needed
    return parts


def _heads_width(table: Table) -> int:
    """Return the width of the row heads. Long heads are broken over lines."""
    heads = [len(table.first), *(len(row.head + row.sign) + 2 * row.below for row in table.rows)]
    return 4 + min(_MAX_HEAD_WIDTH, max(heads))


def _column_width(table: Table, index: int) -> int:
    cells = [_plain_text(row.cells[index]) for row in table.rows]
    return 3 + max(len(text) for text in (*_title(table.columns[index]).splitlines(), *cells))


def _title(column: Column) -> str:
    """Return the column's title with one word per line, so that the column stays narrow."""
    return "\n".join([*column.group.split(), *column.name.split()])


def _plain_text(cell: Cell) -> str:
    """Return a cell's text with signs instead of bold. No other form of the cell is wider."""
    from reports.tables.table import cell_text  # Imports scipy, which most commands do not need.

    text = cell_text(cell).replace("± ", "±")
    return " ".join(part for part in (f"**{text}**" if cell.leads and text else text, cell.note) if part)


def _styled_text(cell: Cell, *, styled: bool) -> Text:
    bold = styled and cell.leads
    return Text(_plain_text(replace(cell, leads=False) if bold else cell), style="bold" if bold else "")


def print_table(table: Table, form: str) -> None:
    """Print a table on the terminal, or write it in another format to the standard output."""
    from reports.tables.formats import WRITERS

    if form == "terminal":
        show_table(table, output_console())
    else:
        sys.stdout.write(WRITERS[form](table))


def show_rows(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Container[str] = (),
    whole: Container[str] = (),
    console: Console | None = None,
) -> None:
    """Print plain rows below a title; columns in `right` are set to the right, those in `whole` are never broken."""
    drawn = TerminalTable(title=title)
    for name in columns:
        drawn.add_column(name, justify="right" if name in right else "left", no_wrap=name in whole, overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    (console or output_console()).print(drawn)


def output_console() -> Console:
    """Return the console of standard output. Pipes and files get whole lines, without colours even if forced.

    Square brackets in titles, names and paths are printed as they are, and are no markup.
    """
    if sys.stdout.isatty():
        return Console(markup=False, emoji=False)
    return Console(width=_WIDTH_OF_FILES, force_terminal=False, color_system=None, markup=False, emoji=False)


def say(console: Console, text: str) -> None:
    """Print plain text without colours, markup or added line breaks."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
