"""`plan`: shows the trainings of an experiment and how long they would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

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
from reproduce.execution.open_sessions import open_sessions
from reproduce.monitoring.time_left import in_words

if TYPE_CHECKING:
    from reproduce.execution.session import Session
    from reproduce.forecast.plan_trainings import MethodPlan
    from reproduce.forecast.rates import Rates
    from results.records.frames import Timing
    from results.spec.experiment_spec import Experiment
    from results.statistics.planning import Split
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
    at_a_time = workers or (1 if elsewhere else default_workers(torch_device))
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
    """Print which differences the planned searches or runs can show, and what other ways to spend the trials would.

    Nothing is printed for a single method. What the store has of the experiment says how far its searches differ.
    """
    from reports.tables.result_notes import budget_text
    from results.statistics.planning import detectable, splits
    from results.statistics.primary_comparison import planned_score
    from results.store.experiment_results import MeasuredExperiment

    experiment = session.experiment
    methods, score = len(experiment.comparable_rows()), planned_score(experiment)
    if methods < 2:
        return
    measured = None
    if store is not None and store.experiment_runs(session.fingerprint):
        measured = MeasuredExperiment.from_store(store, session.fingerprint)
    sees = detectable(experiment, methods, score, measured)
    console.print(" ".join(budget_text(sees, score)), highlight=False)
    if experiment.search.trials:
        _show_splits(splits(experiment, methods, score), experiment, console)


def _show_splits(ways: Sequence[Split], experiment: Experiment, console: Console) -> None:
    """Print what searches of other numbers and lengths cost and can show, if one is long enough to be told apart."""
    from results.statistics.search_deviation import FEWEST_TRIALS

    search = experiment.search
    planned = (search.searches, search.trials)
    table = Table(title="ways to spend the trials of a method")
    for name in ("searches x trials", "trainings", "smallest difference"):
        table.add_column(name, justify="right")
    for way in ways:
        is_planned = (way.searches, way.trials) == planned
        if is_planned or way.trials >= FEWEST_TRIALS:
            smallest = "not known" if way.smallest is None else f"{100 * way.smallest:.1f} points"
            name = f"{way.searches} x {way.trials}{' (planned)' if is_planned else ''}"
            table.add_row(name, str(way.trainings), smallest)
    if table.row_count > 1:
        console.print(table)
        known = any(way.smallest is not None for way in ways)
        source = "from searches in results/measured" if known else "no searches like these are in results/measured"
        console.print(f"Smallest difference that is shown with a probability of 80 %: {source}.", highlight=False)
