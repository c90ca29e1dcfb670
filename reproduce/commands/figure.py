"""`figure`: draws a figure of a paper from the runs in the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError

if TYPE_CHECKING:
    from results.store.store import Store

FigureName = Annotated[
    str | None, typer.Argument(help="Name of a figure. Without a name, the figures of all papers are listed.")
]
FigureFolder = Annotated[
    Path | None, typer.Option("--to", help="Folder for the files. Default: the folder `figures` beside the store.")
]
OtherExperiment = Annotated[
    str | None,
    typer.Option(
        "--experiment",
        help="Draw the figure from this experiment in the store (name or identity), such as one on your own dataset. "
        "It must have rows and settings like the suite's experiment for the figure.",
    ),
]


def figure(
    name: FigureName = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    to: FigureFolder = None,
    experiment: OtherExperiment = None,
) -> None:
    """Draw a figure of a paper from the runs in the store, as PNG and SVG, with a CSV file of the drawn scores."""
    from reproduce.storage import existing_store, storage_paths

    where = storage_paths(store, artifacts, None, None)
    opened = existing_store(where)
    console = output_console()
    if name is None:
        show_figures(opened, console)
        return
    from reports.paper_figures.registry import PAPER_FIGURES
    from reproduce.outputs.paper_figures import draw_figure, run_commands

    if name not in PAPER_FIGURES:
        raise InputError(f"there is no figure {name!r}; the figures are {', '.join(PAPER_FIGURES)}")
    if opened is None:
        commands = run_commands(PAPER_FIGURES[name], experiment)
        raise InputError(f"{store}: there is no store yet; make one with {commands}, or name another with --store")
    files, caption = draw_figure(name, opened, to or where.reports.parent / "figures", experiment)
    for path in files:
        say(console, str(path))
    say(console, caption)


def show_figures(store: Store | None, console: Console) -> None:
    """List the figures of all papers with their experiments, and the number of runs in the store."""
    from reports.paper_figures.registry import PAPER_FIGURES
    from reproduce.outputs.paper_figures import stored_runs

    runs: Mapping[str, int] = {} if store is None else stored_runs(store)
    table = Table(title="figures of the papers")
    for column in ("figure", "paper", "in the paper", "shows", "experiment"):
        table.add_column(column, no_wrap=column in ("figure", "experiment"))
    table.add_column("runs", justify="right")
    for name, entry in PAPER_FIGURES.items():
        count = sum(runs[stored] for stored in entry.own_of(runs))
        table.add_row(name, entry.paper, entry.number, entry.title, entry.experiment, str(count) if count else "none")
    console.print(table)
    say(console, "`reproduce figure NAME` draws a figure; `reproduce run EXPERIMENT` makes its runs.")
