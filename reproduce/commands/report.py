"""`report` writes the page of an experiment, `figure` draws its figures alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console, say, show_rows
from reproduce.errors import InputError


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
        str | None, typer.Argument(help="Name or identity of an experiment in the store. Without it, all are listed.")
    ] = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder for the files. Default: the folder `figures` beside the store.")
    ] = None,
) -> None:
    """Draw the figures of an experiment's page from the runs in the store, as PNG and SVG.

    One of them is a score against a number, if rows of a sweep or panels of the file differ in it; a CSV file has its
    points. Where the suite's experiment makes a paper's figure, the published values that are known stand beside.
    """
    from reproduce.outputs.find_runs import find_experiments
    from reproduce.outputs.page import draw_figures
    from reproduce.storage import opened_store, storage_paths

    opened = opened_store(store, artifacts)
    if name is None:
        latest = opened.latest_experiments()
        rows = [(own, str(len(opened.experiment_runs(latest[own])))) for own in sorted(latest)]
        show_rows("experiments with figures", ("experiment", "runs"), rows, right={"runs"}, whole={"experiment"})
        say(output_console(), "`reproduce figure EXPERIMENT` draws its figures.")
        return
    folder = to or storage_paths(store).store.parent / "figures"
    for path, title in draw_figures(find_experiments(opened, [name]), opened, folder):
        say(output_console(), f"{path}: {title}")
