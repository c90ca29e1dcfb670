"""`status`: lists the contents of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console
from reproduce.storage import opened_store

if TYPE_CHECKING:
    from results.store.store import Store


def status(store: StoreAt = STORE, artifacts: Artifacts = None) -> None:
    """List the contents of the store: experiments, trainings, test evaluations, failures."""
    show_status(opened_store(store, artifacts), output_console())


def show_status(store: Store, console: Console) -> None:
    """Print the experiments, trainings and failures of a store."""
    contents = store.contents()
    trainings = sum(group.trainings for group in contents.trainings)
    console.print(
        f"{store.url}: {len(contents.experiments)} experiment(s), {trainings} training(s), "
        f"{contents.test_evaluations} test evaluation(s), {contents.failures} failure(s)",
        highlight=False,
        soft_wrap=True,
    )
    if contents.experiments:
        table = Table(title="experiments, the latest first")
        for name in ("experiment", "identity", "methods", "searches x trials", "last started", "runs"):
            table.add_column(name, no_wrap=name == "identity")
        for started in contents.experiments:
            plan = (", ".join(started.methods), started.searches)
            table.add_row(started.name, started.identity, *plan, started.last_started[:19], str(started.runs))
        console.print(table)
        console.print(
            "Commands take an identity in place of a name, which means its latest experiment.", soft_wrap=True
        )
    if contents.trainings:
        table = Table(title="trainings")
        for name in ("dataset", "method", "trainings", "diverged", "best validation MAP@R", "hours"):
            table.add_column(name)
        for group in contents.trainings:
            best = "nan" if group.best_map_at_r is None else f"{group.best_map_at_r:.4f}"
            numbers = (str(group.trainings), str(group.diverged), best, f"{group.seconds / 3600:.2f}")
            table.add_row(group.dataset, group.method, *numbers)
        console.print(table)
    for failure in contents.latest_failures:
        console.print(f"failure at {failure.at[:19]}: {failure.reason}", highlight=False)
