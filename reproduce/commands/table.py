"""`table`: draws published tables and tables of stored experiments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import check_format, output_console, print_table
from reproduce.errors import InputError
from reproduce.storage import existing_store_at, opened_store

if TYPE_CHECKING:
    from results.store.store import Store

TableName = Annotated[
    str | None,
    typer.Argument(
        help="A published table, which is drawn beside your own runs, or name or identity of an experiment in the "
        "store. NAME/PANEL selects one panel. Without a name, all names are listed."
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="terminal, markdown, csv, latex, latex-document, html, or json (the records or cells of the table).",
    ),
]
What = Annotated[
    str | None,
    typer.Option(
        "--what",
        help="Kind of table. published: a paper's table beside your own runs; results, differences, doubt, peeking, "
        "hyperparameters, costs: tables of an experiment. Default: published for the name of a published table, "
        "results for an experiment.",
    ),
]


def table(
    name: TableName = None,
    output: Format = "terminal",
    what: What = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Draw a published table beside your own runs, or a table of an experiment in the store.

    A name means the latest experiment of this name; `reproduce status` lists the identities of all. An experiment with
    several panels gets one table per panel.
    """
    from reproduce.outputs.tables import KINDS
    from results.published.tables import published_tables

    kinds = ["published", *KINDS]
    check_format(output)
    if what not in (None, *kinds):
        raise InputError(f"--what {what!r}: use {', '.join(kinds[:-1])} or {kinds[-1]}")
    if name is None:
        _list(existing_store_at(store, artifacts))
    elif what == "published" or (what is None and name in published_tables()):
        _published(name, output, existing_store_at(store, artifacts), store)
    else:
        _stored(name, output, what or "results", opened_store(store, artifacts, f"; {_published_names()} need none"))


def _list(store: Store | None) -> None:
    from reproduce.outputs.find_runs import stored_names
    from results.published.tables import published_tables

    show_table_names(published_tables(), [] if store is None else stored_names(store), output_console())


def _published(name: str, output: str, store: Store | None, store_location: str) -> None:
    from reports.published.layout import published_layout
    from reproduce.outputs.tables import compared_with_runs
    from results.published.tables import published_tables

    if name not in published_tables():
        raise InputError(f"there is no published table {name!r}; use {', '.join(published_tables())}")
    if store is None:
        typer.echo(f"{store_location}: there is no store yet, so the table has no runs", err=True)
    print_table(published_layout(compared_with_runs(name, store)), output)


def _stored(name: str, output: str, what: str, store: Store) -> None:
    from reproduce.outputs.find_runs import find_experiments, others_of_name
    from reproduce.outputs.tables import KINDS
    from results.store.experiment_results import MeasuredExperiment

    for experiment in find_experiments(store, [name], f"; there are also {_published_names()}"):
        if others := others_of_name(store, experiment, [name]):
            typer.echo(others, err=True)
        measured = MeasuredExperiment.from_store(store, experiment.fingerprint, trainings=True)
        if (output, what) == ("json", "results"):
            sys.stdout.write(measured.without_trainings().to_json())
        else:
            print_table(KINDS[what](measured), output)


def _published_names() -> str:
    from results.published.tables import published_tables

    return f"published tables ({', '.join(published_tables())})"


def show_table_names(published: Sequence[str], stored: Sequence[str], console: Console) -> None:
    """Print the names of the tables that `table` can draw."""
    console.print(f"published tables: {', '.join(published)}", highlight=False)
    console.print(f"experiments in the store: {', '.join(stored) or 'none'}", highlight=False)
    console.print("`reproduce table NAME` draws a table.", highlight=False)
