"""`plan`: shows the trainings of an experiment and how long they would take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from reproduce.commands.open_sessions import open_sessions
from reproduce.commands.options import (
    STORE,
    Artifacts,
    Cache,
    Choices,
    Device,
    ExperimentName,
    StoreAt,
    Workers,
    check_workers,
    with_choices,
)
from reproduce.commands.terminal import output_console
from reproduce.monitoring.time_left import in_words

if TYPE_CHECKING:
    from reproduce.execution.plan_trainings import MethodPlan, Rates
    from reproduce.execution.session import Session
    from results.store import Store


@with_choices
def plan(
    experiment: ExperimentName,
    choices: Choices,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            help="Images per second that the machine to plan for trains on; measured on this machine by default.",
            min=1e-9,
        ),
    ] = None,
    device: Device = "auto",
    workers: Workers = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Show the trainings of an experiment, how many of them are in the store, and how long the rest would take.

    Without --data the plan uses the dataset's published counts.
    """
    from reproduce.execution import plan_trainings
    from reproduce.execution.devices import check_device, default_workers
    from reproduce.storage import existing_store, open_studies, storage_paths

    console = output_console()
    check_workers(workers)
    torch_device = check_device(device)
    where = storage_paths(store, artifacts, cache, None)
    opened = existing_store(where)
    for session in open_sessions(experiment, choices, where, console, plan=True):
        plans = plan_trainings.plan(session, opened, open_studies(where) if opened else None)
        rates = plan_trainings.given_rates(rate) if rate else plan_trainings.measured_rates(session, torch_device)
        show_plan(plans, rates, workers or default_workers(), session, console)
        show_budget(session, opened, console)


def show_plan(
    plans: Sequence[MethodPlan], rates: Rates | str, workers: int, session: Session, console: Console
) -> None:
    """Print the number of trainings, how many of them are in the store, and the time left.

    Args:
        plans: One plan per method.
        rates: Images per second, or the reason why they are unknown.
        workers: How many trainings run at the same time.
        session: The opened experiment.
        console: Where the table is printed.
    """
    table = Table(title=f"{session.name}: {session.experiment.title}")
    for name in ("method", "trainings", "in store", "to do", "iterations each", "each", "time left"):
        table.add_column(name, justify="left" if name == "method" else "right")
    least, most = 0.0, 0.0
    for method in plans:
        to_do = method.trainings - method.in_store
        bounds = _seconds(method, rates)
        left = "?"
        if bounds is not None:
            least, most = least + to_do * bounds[0] / workers, most + to_do * bounds[1] / workers
            left = _between(*(in_words(to_do * bound / workers) for bound in bounds))
        table.add_row(
            method.title,
            str(method.trainings),
            str(method.in_store),
            str(to_do),
            _between(f"{method.shortest.iterations:,}", f"{method.longest.iterations:,}"),
            "?" if bounds is None else _between(*(in_words(bound) for bound in bounds)),
            "-" if to_do == 0 else left,
        )
    console.print(table)
    done, trainings = sum(method.in_store for method in plans), sum(method.trainings for method in plans)
    if isinstance(rates, str):
        console.print(
            f"{trainings} trainings, {done} in the store; times are unknown ({rates}); give --rate", highlight=False
        )
        return
    left = _between(in_words(least), in_words(most))
    console.print(f"{trainings} trainings, {done} in the store; {left} left, {workers} at a time", highlight=False)
    console.print(
        f"{rates.training:.1f} images a second in training, {rates.evaluation:.1f} in evaluation, {rates.source}; "
        "the length of a training depends on early stopping",
        highlight=False,
    )


def show_budget(session: Session, store: Store | None, console: Console) -> None:
    """Print which differences the planned runs can show; nothing for a single method.

    Args:
        session: The opened experiment.
        store: The store, if there is one. Its runs of the experiment say how much runs vary.
        console: Where the sentences are printed.
    """
    from reports.tables.budget_text import budget_text
    from results.statistics.planning import budget
    from results.statistics.primary_comparison import planned_score

    if len(session.cards) < 2:
        return
    if session.experiment.search.searches > 1:
        console.print(
            "The search is repeated. How much searches vary is known only afterwards; the page then says which "
            "differences they can show.",
            highlight=False,
        )
        return
    score = planned_score(session.experiment)
    records = [] if store is None else store.experiment_runs(session.fingerprint)
    sees = budget(len(session.cards), session.experiment.reproductions, score, records)
    console.print(" ".join(budget_text(sees, score)), highlight=False)


def _seconds(method: MethodPlan, rates: Rates | str) -> tuple[float, float] | None:
    """Return the shortest and the longest duration of a training in seconds; None if nothing is known.

    Both are equal if the store has trainings of the method.
    """
    if method.seconds_each is not None:
        return method.seconds_each, method.seconds_each
    return None if isinstance(rates, str) else (method.shortest.seconds(rates), method.longest.seconds(rates))


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
