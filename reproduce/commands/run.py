"""`run`: runs an experiment, prints its table and writes its page."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from reproduce.commands.options import (
    STORE,
    Artifacts,
    Cache,
    Choices,
    Device,
    ExperimentName,
    Ray,
    Slurm,
    StoreAt,
    Tables,
    Track,
    TrainingTimeout,
    Workers,
    Yes,
    check_training_timeout,
    check_workers,
    with_choices,
)
from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError, WorkFailedError
from reproduce.execution.open_sessions import open_sessions
from reproduce.monitoring.time_left import in_words

if TYPE_CHECKING:
    from rich.console import Console

    from reproduce.execution.executor import Executor
    from reproduce.execution.run_experiment import Finished
    from reproduce.execution.session import Session
    from reproduce.storage import StoragePaths

LONG_SECONDS = 3600.0
"""A run that is expected to take longer asks first."""

_SHORTER = "Shorter: fewer --methods or --searches, or --racing."
_SHORTER_ON_IMAGES = (
    "Shorter: fewer --methods or --searches, --racing or --frozen; the experiment folder_small is made for your own "
    "images on a laptop."
)


def ask_before_run(session: Session, device: str, workers: int, *, yes: bool, console: Console) -> None:
    """Say the forecast of the trainings to do, as `plan` estimates them. Nothing is said if all are in the store.

    A long run asks on a terminal, unless `yes`; typer.Exit is raised if the user does not want to start.
    """
    from reproduce.forecast.plan_trainings import plan, seconds_to_do
    from reproduce.forecast.rates import REMEDY, expected_rates, rows_word

    store = session.store
    # All timings of a large store take seconds to read, so they are read only if something is left to do.
    to_do = sum(method.to_do for method in plan(session, store))
    if not to_do:
        return
    timings = store.timings()
    rates = expected_rates(session.problem, timings, device)
    if isinstance(rates, str):
        say(console, f"{to_do} trainings to do; how long they take is not known ({rates}); ask `plan`, and {REMEDY}")
        return
    plans = plan(session, store, timings)
    least, typical, most = seconds_to_do(plans, rates, workers)
    own = any(method.has_own_rates(rates) for method in plans)
    upper = "at most " if session.experiment.search.racing else ""
    say(
        console,
        f"{upper}{to_do} trainings to do, forecast: about {in_words(typical)} ({in_words(least)} to {in_words(most)}; "
        f"{rates.training:,.0f} {rows_word(session.problem)} a second, {rates.source}"
        f"{'; a method with trainings in the store has their rate' if own else ''})",
    )
    if typical > LONG_SECONDS and not yes:
        say(console, _SHORTER if session.problem.trunk.is_input_features else _SHORTER_ON_IMAGES)
        if console.is_terminal and sys.stdin.isatty() and not typer.confirm("Start?"):
            say(console, "not started")
            raise typer.Exit(1)


@with_choices
def run(
    experiment: ExperimentName,
    choices: Choices,
    device: Device = "auto",
    workers: Workers = None,
    ray: Ray = None,
    slurm: Slurm = None,
    training_timeout: TrainingTimeout = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
    tables: Tables = None,
    track: Track = None,
    yes: Yes = False,
) -> None:
    """Run an experiment, print its table and write its page. Trainings that are in the store are not repeated.

    Before the first training the run says how long it will take, and asks on a terminal if that is more than an hour.
    You can stop a run with Ctrl-C at any time; the same command continues it.
    """
    from reproduce.commands.terminal import show_table
    from reproduce.execution import run_experiment
    from reproduce.execution.devices import check_device, default_workers
    from reproduce.monitoring.trackers import open_trackers
    from reproduce.storage import storage_paths

    console = output_console()
    check_workers(workers)
    check_training_timeout(training_timeout)
    where = storage_paths(store, artifacts, cache, tables)
    on_cluster = ray is not None or slurm is not None
    if on_cluster:
        where = where.absolute()
    start_executor = (
        _cluster_factory(device, workers, ray, slurm, where)
        if on_cluster
        else _local_factory(device, workers, processes_only=training_timeout is not None)
    )
    trackers = open_trackers(track or [], where.store)
    # The features of a frozen trunk are computed on this machine; the nodes of a cluster read them from the cache.
    features_on = check_device("auto" if on_cluster else device)
    refused: dict[str, str] = {}
    for session in open_sessions(experiment, choices, where, console, plan=False, device=features_on):
        _say_other_data(session, console)
        # A cluster's number of workers and their speed are not known before it is open.
        if ray is None:
            ask_before_run(session, features_on, workers or default_workers(features_on), yes=yes, console=console)
        started = time.perf_counter()
        finished = run_experiment.run(session, start_executor, console, trackers, training_timeout)
        show_table(finished.table, console)
        say(console, _write_page(finished, time.perf_counter() - started, session))
        refused |= {f"{session.name}, {key}": reason for key, reason in finished.refused.items()}
    if refused:
        reasons = "; ".join(f"{method}: {reason}" for method, reason in refused.items())
        raise WorkFailedError(f"no results for {reasons} (the other methods are finished)")


def _say_other_data(session: Session, console: Console) -> None:
    from reproduce.execution.session import note_on_data

    if (note := note_on_data(session)) is not None:
        say(console, note)


def _write_page(finished: Finished, seconds: float, session: Session) -> str:
    from reproduce.outputs.page import page_or_reason

    files = ", ".join(str(path) for path in finished.files)
    page = page_or_reason(session.name, session.fingerprint, session.store, session.paths.reports)
    trainings = f"{finished.made} trainings made in {in_words(seconds)}, {finished.found} found in the store"
    return f"{trainings}; written: {files}\n{page}"


def _local_factory(device: str, workers: int | None, *, processes_only: bool) -> Callable[[], Executor]:
    from reproduce.execution.devices import check_device, default_workers
    from reproduce.execution.local import open_executor

    torch_device = check_device(device)
    return lambda: open_executor(torch_device, workers or default_workers(torch_device), processes_only=processes_only)


def _cluster_factory(
    device: str, workers: int | None, ray: str | None, slurm: str | None, where: StoragePaths
) -> Callable[[], Executor]:
    """Return a function that opens an executor on a cluster. What is not installed or misspelt fails at once."""
    from reproduce.execution.clusters.ray import RayCluster, import_ray
    from reproduce.execution.clusters.slurm import SlurmArrays, import_submitit
    from reproduce.execution.clusters.slurm_job import read_slurm_settings

    if slurm is None:
        assert ray is not None
        import_ray()
        return lambda: RayCluster(ray, device, workers, (where.cache, where.artifacts))
    if ray is not None:
        raise InputError("--ray and --slurm: choose one of them")
    settings = read_slurm_settings(slurm)
    import_submitit()
    return lambda: SlurmArrays(settings, device, workers, where)
