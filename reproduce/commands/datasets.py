"""`datasets`: lists the datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from reproduce.commands.terminal import output_console

if TYPE_CHECKING:
    from protocols.datasets.dataset_registry import DatasetEntry


def datasets() -> None:
    """List the datasets and whether they need a folder of images."""
    from protocols.datasets.dataset_registry import DATASETS

    show_datasets(DATASETS, output_console())


def show_datasets(datasets: Mapping[str, DatasetEntry], console: Console) -> None:
    """Print the datasets, one per line."""
    from results.spec.data_choice import EMBEDDED

    table = Table(title="datasets")
    for name in ("dataset", "what", "classes", "images", "needs"):
        table.add_column(name, justify="right" if name in ("classes", "images") else "left")
    for name, entry in datasets.items():
        counts = entry.publication.counts if entry.publication else None
        size = (f"{counts.classes:,}", f"{counts.images:,}") if counts else ("-", "-")
        table.add_row(name, entry.description, *size, "nothing" if name in EMBEDDED else "--data FOLDER")
    console.print(table)
    console.print(
        "`reproduce data fetch NAME --to FOLDER` downloads a dataset, or says where to get it.", highlight=False
    )
