"""`coverage`: which published rows this suite can reproduce."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError

if TYPE_CHECKING:
    from reproduce.outputs.covered_rows import CoveredRow, Reproducibility

COLUMNS: "tuple[Reproducibility, ...]" = (
    "runnable",
    "not runnable",
    "quoted",
    "source unclear",
    "method not in the suite",
)


def coverage(
    table: Annotated[str | None, typer.Argument(help="A published table, to see each of its rows.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every row of every table as JSON.")] = False,
) -> None:
    """Count the rows of every published table by whether this suite can reproduce them.

    A row counts once for each dataset of its table. `not runnable` are rows that a paper measured, but whose settings
    cannot be determined. A quoted row was measured in another paper, so no run under this paper's conditions
    reproduces it. Most rows of methods that are not in the suite are quoted too.
    """
    from reproduce.outputs.covered_rows import covered_rows
    from results.published.tables import published_tables

    if table is not None and table not in published_tables():
        raise InputError(f"no published table {table!r}; there are {', '.join(published_tables())}")
    rows = covered_rows()
    if table is not None:
        rows = [row for row in rows if row.table == table]
    if as_json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    elif table is not None:
        show_rows(rows, output_console())
    else:
        show_counts(rows, output_console())


def show_counts(rows: Sequence["CoveredRow"], console: Console) -> None:
    """Print a line for every published table, the sums, and the reason for every row that is not runnable."""
    drawn = Table(title="published rows, counted once for each dataset")
    drawn.add_column("table")
    for column in COLUMNS:
        drawn.add_column(column, justify="right")
    counts: dict[str, Counter[Reproducibility]] = {}
    for row in rows:
        counts.setdefault(row.table, Counter())[row.status] += 1
    for table, by_status in counts.items():
        drawn.add_row(table, *(str(by_status[column]) for column in COLUMNS))
    drawn.add_section()
    sums = Counter(row.status for row in rows)
    drawn.add_row("all", *(str(sums[column]) for column in COLUMNS))
    console.print(drawn)
    reasons = {f"{row.table}, {row.label}: {row.detail}": None for row in rows if row.status == "not runnable"}
    if reasons:
        say(console, "Not runnable:")
    for reason in reasons:
        say(console, f"- {reason}")
    say(console, "`reproduce coverage TABLE` lists the rows of one table.")


def show_rows(rows: Sequence["CoveredRow"], console: Console) -> None:
    """The rows of one table, each with the reason."""
    drawn = Table(title=rows[0].table)
    for column in ("row", "dataset", "status", "by, from, or why not"):
        drawn.add_column(column)
    for row in rows:
        reading = f" (our reading: {row.our_reading})" if row.our_reading else ""
        drawn.add_row(row.label, row.dataset, row.status, row.detail + reading)
    console.print(drawn)
