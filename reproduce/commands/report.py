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
    from reproduce.outputs.page import write_page
    from reproduce.storage import existing_store, places

    where = places(store, artifacts, None, None)
    opened = existing_store(where)
    if opened is None:
        raise InputError(f"{store}: no store here yet; make one with `reproduce run`, or name another with --store")
    known = opened.latest_experiments()
    if not known:
        raise InputError(f"{opened.url} holds no experiment yet; make one with `reproduce run`")
    console = output_console()
    for experiment in _wanted(name or [next(iter(known))], known, opened.url):
        page = write_page(experiment, known[experiment], opened, where, to or where.reports)
        say(console, f"{experiment}: {page}")


def _wanted(names: list[str], known: dict[str, str], url: str) -> list[str]:
    """The experiments of these names, all panels of a file; raises InputError for one that the store has not."""
    from reproduce.config.yaml_files import short_name

    found: list[str] = []
    for given in names:
        short = short_name(given)
        mine = sorted(one for one in known if one == short or one.startswith(f"{short}/"))
        if not mine:
            raise InputError(f"no experiment {given!r} in {url}; it holds: {', '.join(sorted(known))}")
        found += mine
    return list(dict.fromkeys(found))
