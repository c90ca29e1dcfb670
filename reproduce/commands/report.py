"""`report` writes the page of an experiment, `figure` draws a figure of a paper from the runs in the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console, say, show_rows
from reproduce.errors import InputError

if TYPE_CHECKING:
    from results.store.store import Store


def report(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names or identities of experiments in the store (`reproduce status` lists them); NAME/PANEL selects "
            "one panel. A name means its latest experiment. Default: the latest of all."
        ),
    ] = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Folder for pages and figures. Default: the folder `reports` beside the store."),
    ] = None,
) -> None:
    """Write an experiment's page, one HTML file: verdicts, tables, figures, protocol, and the origin of every number.

    Each panel of an experiment gets its own page: panels differ in dataset or settings, so they are not compared. The
    page is NAME-IDENTITY/index.html, and NAME leads to that of the latest experiment of the name.
    """
    from reproduce.outputs.find_runs import find_experiments, others_of_name
    from reproduce.outputs.page import write_page
    from reproduce.storage import opened_store, storage_paths

    opened, folder = opened_store(store, artifacts), to or storage_paths(store).reports
    if not (names := name or list(opened.latest_experiments())[:1]):
        raise InputError(f"{opened.url} holds no experiment yet; make one with `reproduce run`")
    for experiment in find_experiments(opened, names):
        page = write_page(experiment.name, experiment.fingerprint, opened, folder)
        say(output_console(), f"{experiment.name}: {page}")
        if others := others_of_name(opened, experiment, names):
            typer.echo(others, err=True)


def figure(
    name: Annotated[
        str | None, typer.Argument(help="Name of a figure. Without a name, the figures of all papers are listed.")
    ] = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder for the files. Default: the folder `figures` beside the store.")
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(
            "--experiment",
            help="Draw the figure from this experiment in the store (name or identity), such as one on your own "
            "dataset. It must have rows and settings like the suite's experiment for the figure.",
        ),
    ] = None,
) -> None:
    """Draw a figure of a paper from the runs in the store, as PNG and SVG, with a CSV file of the drawn scores."""
    from reports.paper_figures.registry import PAPER_FIGURES
    from reproduce.outputs.paper_figures import draw_figure, run_commands
    from reproduce.storage import existing_store, storage_paths

    opened = existing_store(store, artifacts)
    if name is None:
        _list_figures(opened)
        return
    if name not in PAPER_FIGURES:
        raise InputError(f"there is no figure {name!r}; the figures are {', '.join(PAPER_FIGURES)}")
    if opened is None:
        commands = run_commands(PAPER_FIGURES[name], experiment)
        raise InputError(f"{store}: there is no store yet; make one with {commands}, or name another with --store")
    files, caption = draw_figure(name, opened, to or storage_paths(store).store.parent / "figures", experiment)
    for path in files:
        say(output_console(), str(path))
    say(output_console(), caption)


def _list_figures(store: Store | None) -> None:
    """List the figures of all papers with their experiments, and the number of runs in the store."""
    from reports.paper_figures.registry import PAPER_FIGURES

    latest = {} if store is None else store.latest_experiments()
    rows = []
    for name, entry in PAPER_FIGURES.items():
        count = 0 if store is None else sum(len(store.experiment_runs(latest[own])) for own in entry.own_of(latest))
        rows.append((name, entry.paper, entry.number, entry.title, entry.experiment, str(count or "none")))
    columns = ("figure", "paper", "in the paper", "shows", "experiment", "runs")
    show_rows("figures of the papers", columns, rows, right={"runs"}, whole={"figure", "experiment"})
    say(output_console(), "`reproduce figure NAME` draws a figure; `reproduce run EXPERIMENT` makes its runs.")
