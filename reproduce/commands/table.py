"""`table`: published tables and those of stored experiments."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console
from reproduce.errors import InputError
from reproduce.storage import existing_store_at, opened_store
from results.experiment_names import current_name
from results.experiment_results import MeasuredExperiment
from results.published.tables import published_tables
from results.store import Store

TableName = Annotated[
    str | None,
    typer.Argument(
        help="A published table, drawn beside what was run of it, or an experiment in the store; NAME/PANEL for one "
        "panel. Without a name all are listed."
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="terminal, markdown, csv, latex, latex-document, html, or json: the records or cells behind it.",
    ),
]
What = Annotated[
    str | None,
    typer.Option(
        "--what",
        help="printed: as published; results, differences, peeking, hyperparameters, costs: of an experiment. By "
        "default a published table is drawn as printed, an experiment by its results.",
    ),
]


def table(
    name: TableName = None,
    output: Format = "terminal",
    what: What = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Draw a published table, or those of an experiment's latest run, one for each of its panels, from the store."""
    from reports.tables.formats import WRITERS
    from reproduce.outputs.tables import KINDS

    formats, kinds = ["terminal", *WRITERS, "json"], ["printed", *KINDS]
    if output not in formats:
        raise InputError(f"--format {output!r}: use {', '.join(formats[:-1])} or {formats[-1]}")
    if what not in (None, *kinds):
        raise InputError(f"--what {what!r}: use {', '.join(kinds[:-1])} or {kinds[-1]}")
    name = None if name is None else current_name(name)
    if name is None:
        _list(existing_store_at(store, artifacts))
    elif what == "printed" or (what is None and name in published_tables()):
        _printed(name, output, existing_store_at(store, artifacts), store)
    else:
        _stored(name, output, what or "results", opened_store(store, artifacts, f"; {_published()} need none"))


def _list(store: Store | None) -> None:
    from reproduce.outputs.find_runs import stored_names

    show_table_names(published_tables(), [] if store is None else stored_names(store), output_console())


def _printed(name: str, output: str, store: Store | None, place: str) -> None:
    from reports.published.layout import cells_of, draw
    from reports.tables.formats import WRITERS
    from reproduce.commands.terminal import show_drawing
    from reproduce.outputs.tables import printed

    if name not in published_tables():
        raise InputError(f"no published table {name!r}; there are {', '.join(published_tables())}")
    if store is None:
        typer.echo(f"{place}: no store here yet, so nothing was run", err=True)
    joined = printed(name, store)
    if output == "terminal":
        show_drawing(draw(joined), output_console())
    elif output == "json":
        sys.stdout.write(json.dumps(cells_of(joined), indent=1) + "\n")
    else:
        sys.stdout.write(WRITERS[output](draw(joined)))


def _stored(name: str, output: str, what: str, store: Store) -> None:
    from reports.tables.formats import WRITERS
    from reproduce.commands.terminal import show_drawing
    from reproduce.outputs.find_runs import find_experiments
    from reproduce.outputs.tables import KINDS

    for experiment in find_experiments(store, [name], f"; there are also {_published()}"):
        trainings = what in ("peeking", "hyperparameters")
        measured = MeasuredExperiment.from_store(store, experiment.fingerprint, trainings)
        drawing = KINDS[what](measured)
        if output == "terminal":
            show_drawing(drawing, output_console())
        elif output == "json" and what == "results":
            sys.stdout.write(measured.to_json())
        elif output == "json":
            rows = [dict(zip(drawing.sheet.header, values, strict=True)) for values in drawing.sheet.rows]
            sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        else:
            sys.stdout.write(WRITERS[output](drawing))


def _published() -> str:
    return f"published tables ({', '.join(published_tables())})"


def show_table_names(published: Sequence[str], stored: Sequence[str], console: Console) -> None:
    """What `table` can draw."""
    console.print(f"published tables: {', '.join(published)}", highlight=False)
    console.print(f"experiments in the store: {', '.join(stored) or 'none'}", highlight=False)
    console.print("`reproduce table NAME` draws one of them.", highlight=False)
