"""`report`: writes the page of an experiment."""

from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError

StoredNames = Annotated[
    list[str] | None,
    typer.Argument(
        help="Names or identities of experiments in the store (`reproduce status` lists them); NAME/PANEL selects one "
        "panel. A name means its latest experiment. Default: the latest of all."
    ),
]
ReportFolder = Annotated[
    Path | None,
    typer.Option("--to", help="Folder for pages and figures. Default: the folder `reports` beside the store."),
]


def report(
    name: StoredNames = None, store: StoreAt = STORE, artifacts: Artifacts = None, to: ReportFolder = None
) -> None:
    """Write an experiment's page, one HTML file: verdicts, tables, figures, protocol, and the origin of every number.

    Each panel of an experiment gets its own page: panels differ in dataset or settings, so they are not compared. The
    page is NAME-IDENTITY/index.html, and NAME leads to that of the latest experiment of the name.
    """
    from reproduce.outputs.find_runs import find_experiments, latest_experiment, others_of_name
    from reproduce.outputs.page import write_page
    from reproduce.storage import existing_store, storage_paths

    where = storage_paths(store, artifacts, None, None)
    opened = existing_store(where)
    if opened is None:
        raise InputError(f"{store}: there is no store yet; make one with `reproduce run`, or name another with --store")
    console = output_console()
    for experiment in find_experiments(opened, name) if name else [latest_experiment(opened)]:
        page = write_page(experiment.name, experiment.fingerprint, opened, to or where.reports)
        say(console, f"{experiment.name}: {page}")
        if others := others_of_name(opened, experiment, name or []):
            typer.echo(others, err=True)
