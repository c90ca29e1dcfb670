"""`plan`: what an experiment would train, and how long that takes."""

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


@with_choices
def plan(
    experiment: ExperimentName,
    choices: Choices,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            help="Training images per second of the machine to plan for; measured here if not given.",
            min=1e-9,
        ),
    ] = None,
    device: Device = "auto",
    workers: Workers = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Say what an experiment would train, how much of it is in the store, and how long the rest takes.

    Without --data a dataset is planned for by its published counts.
    """
    from reproduce.execution import plan_trainings
    from reproduce.execution.devices import check_device, default_workers
    from reproduce.storage import existing_store, open_studies, places

    console = output_console()
    check_workers(workers)
    chosen = check_device(device)
    where = places(store, artifacts, cache, None)
    opened = existing_store(where)
    for session in open_sessions(experiment, choices, where, console, plan=True):
        plans = plan_trainings.plan(session, opened, open_studies(where) if opened else None)
        rates = plan_trainings.given_rates(rate) if rate else plan_trainings.measured_rates(session, chosen)
        show_plan(plans, rates, workers or default_workers(chosen), session, console)


def show_plan(
    plans: Sequence[MethodPlan], rates: Rates | str, workers: int, session: Session, console: Console
) -> None:
    """What would be trained, what is there, and the time left: measured where the store knows, bounds otherwise.

    rates: or why there are none.
    """
    drawn = Table(title=f"{session.name}: {session.experiment.title}")
    for name in ("method", "trainings", "in store", "to do", "iterations each", "each", "time left"):
        drawn.add_column(name, justify="left" if name == "method" else "right")
    least, most = 0.0, 0.0
    for each in plans:
        to_do = each.trainings - each.in_store
        bounds = _seconds(each, rates)
        left = "?"
        if bounds is not None:
            least, most = least + to_do * bounds[0] / workers, most + to_do * bounds[1] / workers
            left = _between(*(in_words(to_do * bound / workers) for bound in bounds))
        drawn.add_row(
            each.title,
            str(each.trainings),
            str(each.in_store),
            str(to_do),
            _between(f"{each.shortest.iterations:,}", f"{each.longest.iterations:,}"),
            "?" if bounds is None else _between(*(in_words(bound) for bound in bounds)),
            "-" if to_do == 0 else left,
        )
    console.print(drawn)
    done, trainings = sum(each.in_store for each in plans), sum(each.trainings for each in plans)
    if isinstance(rates, str):
        console.print(f"{trainings} trainings, {done} in the store; no times: {rates}; give --rate", highlight=False)
        return
    left = _between(in_words(least), in_words(most))
    console.print(f"{trainings} trainings, {done} in the store; {left} left, {workers} at a time", highlight=False)
    console.print(
        f"{rates.training:.1f} images a second in training, {rates.evaluation:.1f} in evaluation, {rates.source}; "
        "early stopping decides how long a training is",
        highlight=False,
    )


def _seconds(plan: MethodPlan, rates: Rates | str) -> tuple[float, float] | None:
    """Bounds of a training's duration; one value twice where it was measured; None if nothing is known."""
    if plan.seconds_each is not None:
        return plan.seconds_each, plan.seconds_each
    return None if isinstance(rates, str) else (plan.shortest.seconds(rates), plan.longest.seconds(rates))


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
