"""`run`: runs an experiment, prints its answer and writes its page."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reproduce.commands.options import (
    STORE,
    Artifacts,
    Cache,
    Choices,
    Device,
    ExperimentName,
    Ray,
    StoreAt,
    Track,
    Workers,
    with_choices,
)
from reproduce.errors import WorkFailedError
from reproduce.terminal import say
from results.wording import counted, in_words

if TYPE_CHECKING:
    from reproduce.run.run_experiment import Finished
    from reproduce.run.session import Session
    from reproduce.run.tasks import Executor
    from reproduce.storage import StoragePaths


def say_what_is_replaced(session: Session) -> None:
    """Say if the name of the experiment leads to one with other settings than those of this run until now."""
    latest = next((start for start in session.store.starts() if start.name == session.name), None)
    data = session.setup.dataset.fingerprint
    if latest and latest.without_methods != session.experiment.fingerprint_without_rows(session.name, data):
        until_now = f"until now it shows {latest.identity}, with other settings"
        say(f"note: `table {session.name}` will show this run; {until_now}. --name NAME gives it a name of its own")


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
    track: Track = None,
) -> None:
    """Run an experiment, print its answer and write its page. Trainings that are in the store are not repeated.

    Before the first training the run says how many there are, and how long they take, expected and if nothing stops
    early. You can stop it with Ctrl-C at any time; the same command continues it.
    """
    if ray is None and Path("/dev/nvidiactl").exists():
        from protocols.machine.processes import start_importing

        start_importing()  # On a GPU machine the imports of processes take seconds, as those of this one do.
    from protocols.datasets.listing import note_on_test_classes
    from reproduce.run import run_experiment
    from reproduce.run.devices import check_device
    from reproduce.run.open_sessions import open_sessions
    from reproduce.run.progress import tensorboard_folder
    from reproduce.storage import storage_paths

    where = storage_paths(store, artifacts, cache).absolute()
    start_executor = _executor_factory(device, workers, ray, where)
    tracked = tensorboard_folder(where.store.parent / "tensorboard") if track else None
    # The features of a frozen trunk are computed on this machine; the nodes of a cluster read them from the cache.
    features_on = check_device(device if ray is None else "auto")
    failed, methods = dict[str, str](), 0
    sessions = open_sessions(choices.experiments(experiment), where, choices.weights, plan=False, device=features_on)
    for opened in sessions:
        say_what_is_replaced(opened)
        say(note_on_test_classes(opened.setup.dataset, opened.setup.split))
        started, made = time.perf_counter(), 0
        for session in run_experiment.looks_to_come(opened):
            finished = run_experiment.run(session, start_executor, tracked)
            made += finished.made
            if finished.answer.decided or finished.failed:
                break
        done = f"{counted(made, 'training')} made in {in_words(time.perf_counter() - started)}"
        _say_end(session, finished, f"{done}, {finished.found} found in the store")
        methods += len(session.plan.rows)
        failed |= {f"{session.name}, {key}": str(error) for key, error in finished.failed.items()}
    if failed:
        reasons = "; ".join(f"{method}: {reason}" for method, reason in failed.items())
        others = " (the other methods are finished)" if len(failed) < methods else ""
        raise WorkFailedError(f"no results for {reasons}{others}")


def _say_end(session: Session, finished: Finished, done: str) -> None:
    """Print the answer, write the page, and say where tables, figures and page are."""
    from reproduce.outputs.page import page_or_reason  # Imports what draws figures.
    from reproduce.run.run_experiment import table_files
    from reproduce.terminal import show_answer

    show_answer(finished.answer)
    if session.experiment.search.until_decided:
        searches = counted(session.experiment.search.searches, "search")
        say(f"{finished.answer.decided_words} after {searches} of each method")
    say(done)
    files = [*table_files(session).values()]
    say(f"tables ({', '.join(file.suffix for file in files)}): {files[0].with_suffix('')}")
    where = session.store, session.paths.reports
    for line in page_or_reason(session.name, session.fingerprint, *where, finished.answer):
        say(line)


def _executor_factory(device: str, workers: int | None, ray: str | None, where: StoragePaths) -> Callable[[], Executor]:
    """Return a function that opens the executor. What is not installed or misspelt fails at once."""
    if ray is not None:
        from reproduce.run.ray_cluster import RayCluster, import_ray

        import_ray()
        return lambda: RayCluster(ray, device, workers, (where.cache, where.artifacts))
    from reproduce.run.devices import check_device, default_workers
    from reproduce.run.local import LocalProcesses

    torch_device = check_device(device)
    return lambda: LocalProcesses(torch_device, workers or default_workers(torch_device))
