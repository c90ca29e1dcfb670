"""`status`: lists the contents of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console
from reproduce.storage import opened_store

if TYPE_CHECKING:
    from results.store import Store


def status(store: StoreAt = STORE, artifacts: Artifacts = None) -> None:
    """List the contents of the store: experiments, trainings, test evaluations, failures."""
    show_status(opened_store(store, artifacts), output_console())


def show_status(store: Store, console: Console) -> None:
    """Print the experiments, trainings and failures of a store."""
    experiments, folds, runs, failures = store.experiments(), store.folds(), store.runs(), store.failures()
    console.print(
        f"{store.url}: {len(experiments)} experiment(s), {len(folds)} training(s), {len(runs)} test evaluation(s), "
        f"{len(failures)} failure(s)",
        highlight=False,
        soft_wrap=True,
    )
    if len(experiments):
        table = Table(title="experiments, the latest first")
        for name in ("experiment", "id", "last started", "runs"):
            table.add_column(name)
        for row in experiments.itertuples():
            count = len(store.experiment_runs(str(row.fingerprint)))
            table.add_row(str(row.name), str(row.fingerprint)[:12], str(row.last_started)[:19], str(count))
        console.print(table)
    if len(folds):
        table = Table(title="trainings")
        for name in ("dataset", "method", "trainings", "diverged", "best validation MAP@R", "hours"):
            table.add_column(name)
        for (dataset, method), group in folds.groupby(["dataset", "method"]):
            table.add_row(
                str(dataset),
                str(method),
                str(len(group)),
                str(int((group["status"] == "nan").sum())),
                f"{group['best_map_at_r'].max():.4f}",
                f"{group['wall_time'].sum() / 3600:.2f}",
            )
        console.print(table)
    for row in failures.tail(5).itertuples():
        console.print(f"failure at {str(row.at)[:19]}: {row.reason}", highlight=False)
