"""Prints tables and plain text in the terminal, without torch."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from results.wording import counted

if TYPE_CHECKING:
    from reports.tables.table import Cell, Table
    from results.answer.answers import Answer
    from results.findings.experiment import ExperimentAnswer

_WIDTH_OF_FILES = 1000
"""Width of pipes and files, in which no number may be broken or cut."""
_WIDTH_OF_TABLES = 140
"""A results table that is wider is broken in pipes and files too, since people read it there."""
_MOST_ROWS, _MOST_LINES = 7, 12
"""Methods, and lines of table and notes, at the end of a run."""


def show_table(table: Table) -> None:
    """Print a table with its notes. Where it is too wide, cells are broken at blanks, so that numbers stay whole."""
    console = output_console()
    width = console.width if console.is_terminal else _WIDTH_OF_TABLES
    console.print(_drawn(table), width=width, crop=False)
    for note in (table.caption, table.legend, *table.notes, *table.remarks):
        if note:
            console.print(note, highlight=False, markup=False, width=width)


def _drawn(table: Table, *, short: bool = False) -> TerminalTable:
    """Draw a table; a short one has no title and no lines."""
    grid = TerminalTable(title=None if short else Text(table.title, style="table.title"))
    if short:
        grid.box, grid.padding = None, (0, 2, 0, 0)
    grid.add_column(Text(table.first), overflow="fold")
    styled = output_console().is_terminal
    lines = [[_cell(cell, styled=styled) for cell in row.cells] for row in table.rows]
    for place, column in enumerate(table.columns):
        title = (" " if short else "\n").join([*column.group.split(), *column.name.split()])
        words = [len(word) for cells in lines for word in cells[place].plain.split()] if column.numeric else []
        grid.add_column(
            Text(title),
            justify="right" if column.numeric else "left",
            overflow="fold",
            min_width=max(words, default=None),
        )
    for row, below, cells in zip_longest(table.rows, table.rows[1:], lines):
        ends = row.below and (below is None or not below.below)
        grid.add_row(Text(("  " if row.below else "") + row.head + row.sign), *cells, end_section=ends)
    return grid


def show_answer(found: ExperimentAnswer) -> None:
    """Print an experiment's headline, a line for each comparison, and at most twelve lines of table and notes."""
    # Imports scipy, which most commands do not need.
    from reports.headline import comparison_lines, headline, short_table
    from reports.tables.holds import what_stands
    from results.wording import counted

    say(headline(found))
    for line in comparison_lines(found):
        say(f"- {line}")
    if stands := what_stands(found):
        say(stands)
    table = short_table(found)
    shown = table.rows[:_MOST_ROWS]
    output_console().print(_drawn(replace(table, rows=shown), short=True))
    more = {"method": len(table.rows) - len(shown)}
    findings = [one for one in found.findings if one.level != "note"]
    room = _MOST_LINES - 2 - len(shown)
    for finding in findings[:room]:
        say(finding.text)
    more["note"] = len(findings) - room
    if hidden := [counted(count, f"more {thing}") for thing, count in more.items() if count > 0]:
        say(f"the page has {' and '.join(hidden)}")


def show_interim(found: Answer, rounds: int) -> None:
    """Print the methods so far, when each has some of its searches; what they show is said at the end."""
    from reports.headline import short_table

    table = short_table(found)
    best = f", the best {_MOST_ROWS} of {len(table.rows)}" if len(table.rows) > _MOST_ROWS else ""
    say(f"After {rounds} of {counted(found.question.units, 'search')} of each method{best}:")
    output_console().print(_drawn(replace(table, rows=table.rows[:_MOST_ROWS]), short=True))


def _cell(cell: Cell, *, styled: bool) -> Text:
    """Write a cell with its note; one that leads is bold, or between signs where there is no bold."""
    from reports.tables.table import cell_text  # Imports scipy, which most commands do not need.

    text = cell_text(cell).replace("± ", "±")
    signed = f"**{text}**" if cell.leads and text and not styled else text
    return Text(" ".join(part for part in (signed, cell.note) if part), style="bold" if styled and cell.leads else "")


def print_table(table: Table, form: str) -> None:
    """Print a table on the terminal, or write it in another format to the standard output."""
    from reports.tables.formats import WRITERS

    if form == "terminal":
        show_table(table)
    else:
        sys.stdout.write(WRITERS[form](table))


def show_rows(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Container[str] = (),
    whole: Container[str] = (),
) -> None:
    """Print plain rows below a title; columns in `right` are set to the right, those in `whole` are never broken."""
    grid = TerminalTable(title=title)
    for name in columns:
        grid.add_column(name, justify="right" if name in right else "left", no_wrap=name in whole, overflow="fold")
    for row in rows:
        grid.add_row(*row)
    output_console().print(grid)


def output_console() -> Console:
    """Return the console of standard output. Pipes and files get whole lines, without colours even if forced.

    Square brackets in titles, names and paths are printed as they are, and are no markup.
    """
    return _console(sys.stdout.isatty())


@cache
def _console(is_terminal: bool) -> Console:
    """One console for bars and lines, so that lines appear above the bars."""
    if is_terminal:
        return Console(markup=False, emoji=False)
    return Console(width=_WIDTH_OF_FILES, force_terminal=False, color_system=None, markup=False, emoji=False)


def say(text: str) -> None:
    """Print plain text without colours, markup or added line breaks."""
    output_console().print(text, highlight=False, markup=False, soft_wrap=True)
