"""`plan`: shows the trainings of an experiment and how long they would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from reproduce.errors import InputError
from reproduce.monitoring.time_left import in_words

if TYPE_CHECKING:
    from reproduce.execution.session import Session
    from reproduce.forecast.plan_trainings import MethodPlan
    from reproduce.forecast.rates import Rates
    from results.records.frames import Timing
    from results.store.store import Store


@with_choices
def plan(
    experiment: ExperimentName,
    choices: Choices,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", help="Images (or rows of features) per second that the machine to plan for trains on.", min=1e-9
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", help="The machine to plan for: h100, a100, 4090 or cpu. Its rate is a rough estimate."),
    ] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Measure this machine's rate for some seconds.")] = False,
    device: Device = "auto",
    workers: Workers = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Show the trainings of an experiment, how many of them are in the store, and how long the rest would take.

    The times come from the trainings in the store. --rate or --gpu plans for another machine. Without --data the plan
    uses the dataset's published counts.
    """
    from protocols.metrics.faiss_search import backend
    from reproduce.execution.devices import check_device, default_workers
    from reproduce.forecast import plan_trainings
    from reproduce.storage import storage_paths, store_to_read, with_writable_cache

    console = output_console()
    check_workers(workers)
    _check_machine(rate, gpu, measure=measure)
    torch_device = check_device(device)
    where = storage_paths(store, artifacts, cache, None)
    opened = store_to_read(where)
    timings = opened.timings() if opened else []
    # The cores of this machine say nothing about another one.
    elsewhere = rate is not None or gpu is not None
    at_a_time = workers or (1 if elsewhere else default_workers())
    with with_writable_cache(where) as paths:
        for session in open_sessions(experiment, choices, paths, console, plan=True):
            plans = plan_trainings.plan(session, opened, timings)
            chosen = _rates(session, timings, rate, gpu, torch_device, measure=measure)
            show_plan(plans, chosen, at_a_time, session, console)
            if not elsewhere:
                console.print(f"nearest neighbours on {torch_device}: {backend(torch_device)}", highlight=False)
            if elsewhere and workers is None:
                console.print("One training at a time is assumed for another machine; --workers changes it.")
            show_budget(session, opened, console)


def _check_machine(rate: float | None, gpu: str | None, *, measure: bool) -> None:
    from reproduce.forecast.machine_rates import MACHINES

    if (rate is not None) + (gpu is not None) + measure > 1:
        raise InputError("--rate, --gpu and --measure exclude each other; give one of them")
    if gpu is not None and gpu not in MACHINES:
        raise InputError(f"--gpu {gpu!r}: known are {', '.join(MACHINES)}; or give --rate IMAGES_PER_SECOND")


def _rates(
    session: Session, timings: Sequence[Timing], rate: float | None, gpu: str | None, device: str, *, measure: bool
) -> Rates | str:
    """Return the rates to plan with, or why they are unknown."""
    from reproduce.forecast import rates

    if rate is not None:
        return rates.given_rates(rate)
    if gpu is not None:
        return rates.machine_rates(gpu, session.problem)
    if measure:
        return rates.measured_rates(session.problem, device)
    return rates.expected_rates(session.problem, timings, device)


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
    known = None if isinstance(rates, str) else rates
    table = Table(title=f"{session.name}: {session.experiment.title}")
    for name in ("method", "trainings", "in store", "to do", "iterations each", "at least", "typical", "at most"):
        table.add_column(name, justify="left" if name == "method" else "right")
    all_seconds = [method.seconds_to_do(known) for method in plans]
    for method, seconds in zip(plans, all_seconds, strict=True):
        times = ("?",) * 3 if seconds is None else tuple(in_words(part / workers) for part in seconds)
        table.add_row(
            method.title,
            str(method.trainings),
            str(method.in_store),
            str(method.to_do),
            _between(f"{method.shortest.iterations:,}", f"{method.longest.iterations:,}"),
            *(times if method.to_do else ("-",) * 3),
        )
    console.print(table)
    for line in _summary(plans, all_seconds, rates, workers, session):
        console.print(line, highlight=False)


def _summary(
    plans: Sequence[MethodPlan],
    all_seconds: Sequence[tuple[float, float, float] | None],
    rates: Rates | str,
    workers: int,
    session: Session,
) -> Iterator[str]:
    """Write the lines below the table: counts, the time left, and where the times come from."""
    from reproduce.forecast.rates import REMEDY, training_rows_word

    most = "at most " if session.experiment.search.racing else ""
    done, trainings = sum(method.in_store for method in plans), sum(method.trainings for method in plans)
    counts = f"{most}{trainings} trainings, {done} in the store"
    known = [seconds for seconds in all_seconds if seconds is not None]
    if len(known) < len(all_seconds):
        yield f"{counts}; times are unknown ({rates}); {REMEDY}"
        return
    least, typical, largest = (in_words(sum(parts) / workers) for parts in zip(*known, strict=True))
    span = "" if least == largest else f" ({least} to {largest})"
    yield f"{counts}; about {typical} left{span}, {workers} at a time"
    if isinstance(rates, str):
        yield "Times: the mean of each method's trainings in the store."
        return
    own = any(method.has_own_rates(rates) for method in plans)
    yield (
        f"Rate: {rates.training:,.1f} {training_rows_word(session.problem)} a second in training, {rates.source}; "
        f"{rates.evaluation_in_words}.{' A method with trainings in the store has their rate.' if own else ''}"
    )
    if session.problem.trunk.frozen:
        yield f"Not counted: the features of the {len(session.problem.dataset.images):,} images, computed once."
    if least != largest:
        sources = dict.fromkeys(method.typical.source for method in plans if method.shortest != method.longest)
        yield (
            "The length of a training depends on early stopping: at least, if it stops as early as possible; at most, "
            f"if it runs for all epochs. Typical length: {'; '.join(sources)}."
        )


def show_budget(session: Session, store: Store | None, console: Console) -> None:
    """Print which differences the planned runs can show; nothing for a single method.

    Args:
        session: The opened experiment.
        store: The store, if there is one. Its runs of the experiment say how much runs vary.
        console: Where the sentences are printed.
    """
    from reports.tables.result_notes import budget_text
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
    on_features = session.experiment.trunk.is_input_features
    sees = budget(len(session.cards), session.experiment.reproductions, score, records, on_features=on_features)
    console.print(" ".join(budget_text(sees, score)), highlight=False)


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
