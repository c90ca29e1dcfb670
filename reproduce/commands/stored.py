"""`status` and `table`: what a store holds."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, Name, StoreAt
from reproduce.commands.output import output_console
from reproduce.errors import InputError
from results.measured import MeasuredExperiment
from results.store import Store


def status(store: StoreAt = STORE, artifacts: Artifacts = None) -> None:
    """Say what the store holds: experiments, trainings, test evaluations, failures."""
    from reproduce.terminal import show_status

    show_status(opened_store(store, artifacts), output_console())


def table(
    experiment: Name,
    output: Annotated[
        str, typer.Option("--format", help="terminal, markdown, csv, latex, or json: the records behind it.")
    ] = "terminal",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Draw the table of an experiment's latest run from the store, one for each of its panels."""
    from reports.tables import table_of
    from reproduce.reading import short_name
    from reproduce.terminal import show_table

    opened = opened_store(store, artifacts)
    if output not in ("terminal", "markdown", "csv", "latex", "json"):
        raise InputError(f"--format {output!r}: use terminal, markdown, csv, latex or json")
    known, name = opened.experiments(), short_name(experiment)
    mine = known[(known["name"] == name) | known["name"].str.startswith(f"{name}/")].drop_duplicates("name")
    if mine.empty:
        names = ", ".join(sorted(set(known["name"]))) or "none"
        raise InputError(f"no experiment {experiment!r} in {opened.url}; it holds: {names}")
    for fingerprint in mine.sort_values("name")["fingerprint"]:
        measured = MeasuredExperiment.from_store(opened, str(fingerprint))
        drawn = table_of(measured)
        texts = {
            "markdown": drawn.to_markdown,
            "csv": drawn.to_csv,
            "latex": drawn.to_latex,
            "json": measured.to_json,
        }
        if output == "terminal":
            show_table(drawn, output_console())
        else:
            sys.stdout.write(texts[output]())


def opened_store(store: str, artifacts: Path | None) -> Store:
    """The store that `--store` names; raises InputError if there is none yet."""
    from reproduce.places import existing_store, places

    opened = existing_store(places(store, artifacts, None, None))
    if opened is None:
        raise InputError(f"{store}: no store here yet; make one with `reproduce run`, or name another with --store")
    return opened
