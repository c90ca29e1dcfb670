"""`experiments`: lists the experiment files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from reproduce.commands.terminal import output_console

if TYPE_CHECKING:
    from results.spec.experiment_spec import Experiment


def experiments() -> None:
    """List the experiments that come with the suite."""
    from reproduce.config.experiment_file import experiment_names, load_experiments

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
