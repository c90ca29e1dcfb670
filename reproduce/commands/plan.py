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
    _check_machine(rate, gpu)
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
            chosen = _rates(session, timings, rate, gpu, torch_device)
            show_plan(plans, chosen, at_a_time, session, console)
            if not elsewhere:
                console.print(f"nearest neighbours on {torch_device}: {backend(torch_device)}", highlight=False)
            if elsewhere and workers is None:
                console.print("One training at a time is assumed for another machine; --workers changes it.")
            show_budget(session, opened, console)


def _check_machine(rate: float | None, gpu: str | None) -> None:
    from reproduce.forecast.rates import MACHINES

    if rate is not None and gpu is not None:
        raise InputError("--rate and --gpu exclude each other; give one of them")
    if gpu is not None and gpu not in MACHINES:
        raise InputError(f"--gpu {gpu!r}: known are {', '.join(MACHINES)}; or give --rate IMAGES_PER_SECOND")


def _rates(
    session: Session, timings: Sequence[Timing], rate: float | None, gpu: str | None, device: str
) -> Rates | str:
    from reproduce.forecast.rates import expected_rates, given_rates, machine_rates

    if rate is not None:
        return given_rates(rate)
    return expected_rates(session.problem, timings, device) if gpu is None else machine_rates(gpu, session.problem)


def show_plan(
    plans: Sequence[MethodPlan], rates: Rates | str, workers: int, session: Session, console: Console
) -> None:
    """Print the number of trainings, how many of them are in the store, and the time left."""
    table = Table(title=f"{session.name}: {session.experiment.title}")
    for name in ("method", "trainings", "in store", "to do", "iterations each", "at least", "typical", "at most"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for method in plans:
        times: tuple[str, ...] = ("-" if not method.to_do else "?",) * 3
        if method.to_do and not isinstance(rates, str):
            times = tuple(in_words(seconds / workers) for seconds in method.seconds_to_do(rates))
        counts = (str(count) for count in (method.trainings, method.in_store, method.to_do))
        iterations = dict.fromkeys(f"{length.iterations:,}" for length in (method.shortest, method.longest))
        table.add_row(method.title, *counts, " to ".join(iterations), *times)
    console.print(table)
    for line in _summary(plans, rates, workers, session):
        console.print(line, highlight=False)


def _summary(plans: Sequence[MethodPlan], rates: Rates | str, workers: int, session: Session) -> Iterator[str]:
    from reproduce.forecast.plan_trainings import seconds_to_do
    from reproduce.forecast.rates import EVALUATION_SPEED, REMEDY, rows_word

    most = "at most " if session.experiment.search.racing else ""
    trainings, to_do = sum(method.trainings for method in plans), sum(method.to_do for method in plans)
    counts = f"{most}{trainings} trainings, {trainings - to_do} in the store"
    if isinstance(rates, str):
        yield f"{counts}; times are unknown ({rates}); {REMEDY}" if to_do else f"{counts}; nothing is left to do"
        return
    least, typical, largest = (in_words(seconds) for seconds in seconds_to_do(plans, rates, workers))
    span = "" if least == largest else f" ({least} to {largest})"
    yield f"{counts}; about {typical} left{span}, {workers} at a time"
    own = any(method.has_own_rates(rates) for method in plans)
    yield (
        f"Rate: {rates.training:,.1f} {rows_word(session.problem)} a second in training, {rates.source}; evaluation is "
        f"assumed to be {EVALUATION_SPEED} times as fast."
        f"{' A method with trainings in the store has their rate.' if own else ''}"
    )
    if session.problem.trunk.frozen:
        yield f"Not counted: the features of the {len(session.problem.dataset.images):,} images, computed once."
    if least != largest:
        sources = dict.fromkeys(method.typical_source for method in plans if method.shortest != method.longest)
        yield (
            "The length of a training depends on early stopping: at least, if it stops as early as possible; at most, "
            f"if it runs for all epochs. Typical length: {'; '.join(sources)}."
        )


def show_budget(session: Session, store: Store | None, console: Console) -> None:
    """Print which differences the planned runs can show; nothing for a single method.

    The runs of the experiment in the store, if there is one, say how much runs vary.
    """
    from reports.tables.result_notes import budget_text
    from results.statistics.planning import budget
    from results.statistics.primary_comparison import planned_score

    if len(session.titles) < 2:
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
    sees = budget(len(session.titles), session.experiment.reproductions, score, records, on_features=on_features)
    console.print(" ".join(budget_text(sees, score)), highlight=False)
