"""`table`: draws published tables and tables of stored experiments."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import check_format, output_console, print_table, say
from reproduce.errors import InputError
from reproduce.storage import existing_store_at, opened_store

if TYPE_CHECKING:
    from reports.tables.table import Table
    from results.store.experiment_results import MeasuredExperiment
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
        help="Kind of table. published: a paper's table beside your own runs; results, differences, uncertainty, "
        "peeking, hyperparameters, costs: tables of an experiment. Default: published for the name of a published "
        "table, results for an experiment.",
    ),
]
Notes = Annotated[
    str, typer.Option("--notes", help="Notes below the table: short (what a reader must know), all, or none.")
]


def table(
    name: TableName = None,
    output: Format = "terminal",
    what: What = None,
    notes: Notes = "all",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Draw a published table beside your own runs, or a table of an experiment in the store.

    A name means the latest experiment of this name; `reproduce status` lists the identities of all. An experiment with
    several panels gets one table per panel.
    """
    from reports.tables.table import with_notes
    from reproduce.outputs.tables import KINDS
    from results.published.tables import published_tables

    check_format(output)
    _check("--what", what, (None, "published", *KINDS))
    _check("--notes", notes, ("short", "all", "none"))
    if name is None:
        _list(existing_store_at(store, artifacts))
    elif what == "published" or (what is None and name in published_tables()):
        print_table(with_notes(_published(name, existing_store_at(store, artifacts), store), notes), output)
    else:
        opened = opened_store(store, artifacts, f"; {_published_names()} need none")
        for measured in _stored(name, opened):
            if output == "json" and what in (None, "results"):
                sys.stdout.write(measured.without_trainings().to_json())
            else:
                print_table(with_notes(KINDS[what or "results"](measured), notes), output)


def _check(option: str, value: str | None, known: Sequence[str | None]) -> None:
    if value not in known:
        *names, last = [name for name in known if name]
        raise InputError(f"{option} {value!r}: use {', '.join(names)} or {last}")


def _list(store: Store | None) -> None:
    from reproduce.outputs.find_runs import stored_names
    from results.published.tables import published_tables

    console, stored = output_console(), [] if store is None else stored_names(store)
    say(console, f"published tables: {', '.join(published_tables())}")
    say(console, f"experiments in the store: {', '.join(stored) or 'none'}")
    say(console, "`reproduce table NAME` draws a table.")


def _published(name: str, store: Store | None, store_location: str) -> Table:
    from reports.published.layout import published_layout
    from reproduce.outputs.tables import compared_with_runs
    from results.published.tables import published_tables

    if name not in published_tables():
        raise InputError(f"there is no published table {name!r}; use {', '.join(published_tables())}")
    if store is None:
        typer.echo(f"{store_location}: there is no store yet, so the table has no runs", err=True)
    return published_layout(compared_with_runs(name, store))


def _stored(name: str, store: Store) -> Iterator[MeasuredExperiment]:
    from reproduce.outputs.find_runs import find_experiments, others_of_name
    from results.store.experiment_results import MeasuredExperiment

    for experiment in find_experiments(store, [name], f"; there are also {_published_names()}"):
        if others := others_of_name(store, experiment, [name]):
            typer.echo(others, err=True)
        yield MeasuredExperiment.from_store(store, experiment.fingerprint, trainings=True)


def _published_names() -> str:
    from results.published.tables import published_tables

    return f"published tables ({', '.join(published_tables())})"
