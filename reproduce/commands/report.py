"""`report`: writes the page and the figures of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.errors import InputError
from reproduce.terminal import say


def report(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names or identities of experiments in the store (`reproduce status` lists them); NAME/PANEL selects "
            "one panel. A name means its latest finished experiment. Default: the latest of all."
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
    page is NAME-IDENTITY/index.html, and NAME leads to that of the latest experiment of the name. Its figures lie
    beside it as PDF, SVG and PNG. If the panels of a file differ in a number, a figure over them is in NAME/figures.
    """
    from reproduce.outputs.find_runs import find_experiments, later_starts
    from reproduce.outputs.page import write_page, write_sweeps
    from reproduce.storage import opened_store, storage_paths

    opened, folder = opened_store(store, artifacts), to or storage_paths(store).reports
    if not (experiments := find_experiments(opened, name) if name else opened.starts()[:1]):
        raise InputError(f"{opened.url} holds no experiment yet; make one with `reproduce run`")
    for line in later_starts(opened, [one for one in experiments if one.name in (name or ())]):
        typer.echo(line, err=True)
    for experiment in experiments:
        page = write_page(experiment.name, experiment.fingerprint, opened, folder)
        say(f"{experiment.name}: {page}")
    for path, title in write_sweeps(experiments, opened, folder):
        say(f"{path}: {title}")
