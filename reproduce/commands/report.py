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
        str | None,
        typer.Argument(
            help="Name of a paper's figure, or of an experiment in the store, whose figures are all drawn. Without a "
            "name, both are listed."
        ),
    ] = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder for the files. Default: the folder `figures` beside the store.")
    ] = None,
) -> None:
    """Draw a figure of a paper, or the figures of an experiment, from the runs in the store, as PNG and SVG.

    A paper's figure comes with a CSV file of the drawn scores. The figures of an experiment are those of its page, with
    one for each number in which rows of a sweep differ.
    """
    from reports.paper_figures import PAPER_FIGURES
    from reproduce.outputs.find_runs import find_experiments
    from reproduce.outputs.paper_figures import draw_own_figures, draw_paper_figure, run_commands
    from reproduce.storage import existing_store, storage_paths

    opened, folder = existing_store(store, artifacts), to or storage_paths(store).store.parent / "figures"
    if name is None:
        _list_figures(opened)
    elif opened is None:
        commands = run_commands(PAPER_FIGURES[name]) if name in PAPER_FIGURES else "`reproduce run`"
        raise InputError(f"{store}: there is no store yet; make one with {commands}, or name another with --store")
    elif name in PAPER_FIGURES:
        files, caption = draw_paper_figure(name, opened, folder)
        for line in (*map(str, files), caption):
            say(output_console(), line)
    else:
        for found in find_experiments(opened, [name], f"; figures of papers: {', '.join(PAPER_FIGURES)}"):
            own = folder / found.name.replace("/", "_")
            drawn = draw_own_figures(found, opened, own)
            for file, title in drawn:
                say(output_console(), f"{own / file}.png: {title}")


def _list_figures(store: Store | None) -> None:
    """List the figures of all papers with their experiments, and the experiments in the store."""
    from reports.paper_figures import PAPER_FIGURES

    latest = {} if store is None else store.latest_experiments()
    rows = []
    for name, entry in PAPER_FIGURES.items():
        count = 0 if store is None else sum(len(store.experiment_runs(latest[own])) for own in entry.own_of(latest))
        rows.append((name, f"{entry.paper}, {entry.number}", entry.experiment, str(count or "none")))
    columns = ("figure", "paper", "experiment", "runs")
    show_rows("figures of the papers", columns, rows, right={"runs"}, whole={"figure", "experiment"})
    say(output_console(), f"experiments in the store: {', '.join(sorted(latest)) or 'none'}")
    say(output_console(), "`reproduce figure NAME` draws a paper's figure, or all figures of an experiment.")
