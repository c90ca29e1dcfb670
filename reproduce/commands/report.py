"""`report`: an experiment's page."""

from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError

StoredNames = Annotated[
    list[str] | None,
    typer.Argument(
        help="Experiments as the store names them, NAME/PANEL for one panel of several; the latest if none is given."
    ),
]
ReportFolder = Annotated[
    Path | None, typer.Option("--to", help="Folder for pages and figures; reports beside the store.")
]


def report(
    name: StoredNames = None, store: StoreAt = STORE, artifacts: Artifacts = None, to: ReportFolder = None
) -> None:
    """Write an experiment's page: verdicts, tables, figures, protocol, origin of every number, in one HTML file.

    A file with panels makes a page for each: panels differ in dataset or settings, so nothing is compared across them.
    """
    from reproduce.outputs.find_runs import find_experiments, latest_experiment
    from reproduce.outputs.page import write_page
    from reproduce.storage import existing_store, storage_paths

    where = storage_paths(store, artifacts, None, None)
    opened = existing_store(where)
    if opened is None:
        raise InputError(f"{store}: no store here yet; make one with `reproduce run`, or name another with --store")
    console = output_console()
    for experiment in find_experiments(opened, name) if name else [latest_experiment(opened)]:
        page = write_page(experiment.name, experiment.fingerprint, opened, where, to or where.reports)
        say(console, f"{experiment.name}: {page}")
