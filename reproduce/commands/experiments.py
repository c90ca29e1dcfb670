"""`experiments`: lists the experiment files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from reproduce.commands.terminal import output_console

if TYPE_CHECKING:
    from results.spec.experiment_spec import Experiment


def experiments(
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of an experiment file, for editors.")
    ] = False,
) -> None:
    """List the experiments that come with the suite."""
    from reproduce.config.experiment_file import experiment_names, load_experiments
    from reproduce.config.experiment_schema import experiment_schema

    if schema:
        sys.stdout.write(experiment_schema())
        return
    show_experiments({name: load_experiments(name, {}) for name in experiment_names()}, output_console())


def show_experiments(files: Mapping[str, Mapping[str, Experiment]], console: Console) -> None:
    """Print the experiment files, one per line.

    A file with several panels shows the datasets of all its panels and the largest number of methods in a panel.
    """
    table = Table(title="experiments")
    for name in ("experiment", "title", "protocol", "dataset", "methods", "trials", "reproductions"):
        table.add_column(name)
    for name, panels in files.items():
        first = next(iter(panels.values()))
        table.add_row(
            name,
            first.title,
            first.protocol,
            ", ".join(dict.fromkeys(panel.dataset.name for panel in panels.values())),
            str(max(len(panel.methods) + len(panel.variants) for panel in panels.values())),
            str(first.search.trials),
            str(first.reproductions),
        )
    console.print(table)
