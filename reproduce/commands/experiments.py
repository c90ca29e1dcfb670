"""`run` and `plan`: experiments carried out, and what that would take."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress as RichProgress

from reproduce.commands.options import (
    STORE,
    Artifacts,
    Cache,
    Choices,
    Device,
    Name,
    Ray,
    StoreAt,
    Tables,
    Track,
    Workers,
    check_workers,
    with_choices,
)
from reproduce.commands.output import output_console
from reproduce.errors import InputError

if TYPE_CHECKING:
    from reproduce.executors import Executor
    from reproduce.experiment import Experiment
    from reproduce.places import Places
    from reproduce.session import Session


@with_choices
def run(
    experiment: Name,
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
    from reproduce import running
    from reproduce.places import places
    from reproduce.terminal import show_drawing
    from reproduce.tracking import open_trackers

    console = output_console()
    check_workers(workers)
    where = places(store, artifacts, cache, tables)
    if ray is not None:
        where = where.absolute()
    start = _executors(device, workers, ray, where)
    trackers = open_trackers(track or [], where.store)
    for session in _sessions(experiment, choices, where, console, plan=False):
        started = time.perf_counter()
        finished = running.run(session, start, console, trackers)
        show_drawing(finished.table.drawing(), console)
        seconds = time.perf_counter() - started
        console.print(running.ending(finished, seconds, session), highlight=False, soft_wrap=True)


@with_choices
def plan(
    experiment: Name,
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
    from reproduce import planning
    from reproduce.devices import check_device, default_workers
    from reproduce.places import existing_store, open_studies, places
    from reproduce.terminal import show_plan

    console = output_console()
    check_workers(workers)
    chosen = check_device(device)
    where = places(store, artifacts, cache, None)
    opened = existing_store(where)
    for session in _sessions(experiment, choices, where, console, plan=True):
        plans = planning.plan(session, opened, open_studies(where) if opened else None)
        rates = planning.given_rates(rate) if rate else planning.measured_rates(session, chosen)
        show_plan(plans, rates, workers or default_workers(chosen), session, console)


def _executors(device: str, workers: int | None, ray: str | None, where: "Places") -> "Callable[[], Executor]":
    """What opens the executor that was asked for, once per experiment of a file; raises InputError."""
    from reproduce.devices import check_device, default_workers
    from reproduce.executors import open_executor
    from reproduce.ray_executor import RayCluster, import_ray

    if ray is not None:
        import_ray()  # Says what to install before images are read.
        return lambda: RayCluster(ray, device, workers, (where.cache, where.artifacts))
    chosen = check_device(device)
    return lambda: open_executor(chosen, workers or default_workers(chosen))


def _sessions(name: str, choices: Choices, where: "Places", console: Console, *, plan: bool) -> "Iterator[Session]":
    """The experiments of a file one after another, each with a bar while its weights or images are made ready."""
    from reproduce.experiment import load_experiments
    from reproduce.session import needs_folder, open_session

    loaded = load_experiments(name, choices.overrides())
    datasets = {experiment.dataset.name for experiment in loaded.values()}
    located = {key: _located(experiment, choices, datasets) for key, experiment in loaded.items()}
    without = [key for key, experiment in located.items() if needs_folder(experiment) and not plan]
    if len(without) == len(located) and len(located) > 1:
        asked = " and ".join(sorted(f"--data {located[key].dataset.name}=FOLDER" for key in without))
        raise InputError(f"{name}: say where images lie, with one or more of {asked}")
    for key, experiment in located.items():
        if key in without and len(located) > 1:
            console.print(f"{key}: not run, no --data {experiment.dataset.name}=FOLDER", highlight=False)
            continue
        with RichProgress(console=console, transient=True, disable=not console.is_terminal) as bar:
            reading = _shown(bar, "reading images")
            fetching = _shown(bar, "fetching the trunk's weights")
            session = open_session(key, experiment, where, reading, choices.weights, fetching, outline=plan)
        yield session


def _shown(bar: RichProgress, what: str) -> Callable[[int, int], None]:
    """A line of the bar that appears with the first progress."""
    task = bar.add_task(what, visible=False)
    return lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _located(experiment: "Experiment", choices: Choices, datasets: set[str]) -> "Experiment":
    root = choices.root_of(experiment.dataset.name, datasets)
    if root is None:
        return experiment
    return experiment.model_copy(update={"dataset": experiment.dataset.model_copy(update={"root": root})})
