"""`run`: carries an experiment out."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from reproduce.commands.open_sessions import open_sessions
from reproduce.commands.options import (
    STORE,
    Artifacts,
    Cache,
    Choices,
    Device,
    ExperimentName,
    Ray,
    StoreAt,
    Tables,
    Track,
    Workers,
    check_workers,
    with_choices,
)
from reproduce.commands.terminal import output_console, say
from reproduce.monitoring.time_left import in_words

if TYPE_CHECKING:
    from reproduce.execution.executor import Executor
    from reproduce.execution.run_experiment import Finished
    from reproduce.execution.session import Session
    from reproduce.storage import StoragePaths


@with_choices
def run(
    experiment: ExperimentName,
    choices: Choices,
    device: Device = "auto",
    workers: Workers = None,
    ray: Ray = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
    tables: Tables = None,
    track: Track = None,
) -> None:
    """Run an experiment, or what is missing of it, print its table and write its page.

    Stop it with Ctrl-C whenever you like; the same command goes on where it was.
    """
    from reproduce.commands.terminal import show_table
    from reproduce.execution import run_experiment
    from reproduce.monitoring.trackers import open_trackers
    from reproduce.storage import storage_paths

    console = output_console()
    check_workers(workers)
    where = storage_paths(store, artifacts, cache, tables)
    if ray is not None:
        where = where.absolute()
    start = _executors(device, workers, ray, where)
    trackers = open_trackers(track or [], where.store)
    for session in open_sessions(experiment, choices, where, console, plan=False):
        started = time.perf_counter()
        finished = run_experiment.run(session, start, console, trackers)
        show_table(finished.table, console)
        say(console, _ending(finished, time.perf_counter() - started, session))


def _ending(finished: "Finished", seconds: float, session: "Session") -> str:
    """The last lines of a run: how much was trained, and where its table and its page are. Writes the page."""
    from reproduce.outputs.page import page_or_reason

    files = ", ".join(str(path) for path in finished.files)
    page = page_or_reason(session.name, session.fingerprint, session.paths)
    made = f"{finished.made} trainings made in {in_words(seconds)}, {finished.found} found in the store"
    return f"{made}; written: {files}\n{page}"


def _executors(device: str, workers: int | None, ray: str | None, where: "StoragePaths") -> "Callable[[], Executor]":
    """A function that opens the executor asked for, to be called for each experiment of a file; raises InputError."""
    from reproduce.execution.devices import check_device, default_workers
    from reproduce.execution.local import open_executor
    from reproduce.execution.ray_cluster import RayCluster, import_ray

    if ray is not None:
        import_ray()  # Says what to install before images are read.
        return lambda: RayCluster(ray, device, workers, (where.cache, where.artifacts))
    chosen = check_device(device)
    return lambda: open_executor(chosen, workers or default_workers(chosen))
