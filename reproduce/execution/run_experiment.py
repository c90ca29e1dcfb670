"""Carries an experiment out: its search, its reproductions, its test evaluations and its table."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from protocols.metrics.neighbours import backend
from protocols.search.study import Study
from reports.tables.formats import WRITERS
from reports.tables.result_table import table_of
from reports.tables.table import Table
from reproduce.execution.devices import prepare_process, threads_per_training
from reproduce.execution.executor import Executor
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.session import Session
from reproduce.monitoring.observer import Observers
from reproduce.monitoring.progress import RunProgress
from reproduce.monitoring.time_left import Forecast
from reproduce.monitoring.trackers import Tracker, Tracking
from reproduce.storage import open_store, open_studies, studies_in_one_line
from results.experiment_results import MeasuredExperiment
from results.store import Store
from results.whole_files import write_whole


@dataclass(frozen=True)
class Finished:
    """The table of a run, its files, and how many trainings were made now and how many were in the store before."""

    table: Table
    files: tuple[Path, ...]
    made: int
    found: int


def run(
    session: Session, start: Callable[[], Executor], console: Console, trackers: dict[str, Tracker] | None = None
) -> Finished:
    """Carries out what the store lacks of an experiment and writes its table.

    Args:
        session: The opened experiment.
        start: Opens the executor of the trainings, which is closed at the end.
        console: Where the progress is shown.
        trackers: Trackers by name, which are told of every new training and test. One that fails is removed.

    Raises:
        WorkFailedError: A job cannot be done; what was finished before is in the store.
        StoreError: The store cannot be read or written.
    """
    with closing(start()) as executor:
        store, studies = open_store(session.paths), open_studies(session.paths)
        methods = session.studies(studies)
        totals = {key: session.protocol.trainings_of(study) for key, study in methods.items()}
        forecast = Forecast(totals, executor.workers)
        with studies_in_one_line(session.paths):
            count_told_trials(methods, store, forecast)
        _say_start(session, executor, console)
        store.put_experiment(session.fingerprint, session.name, session.summary())
        # This process draws the samples of the search; its threads must not depend on the number of workers either.
        prepare_process(executor.device)
        protocols = {key: session.protocol.run(study) for key, study in methods.items()}
        titles = {card.key: card.title for card in session.cards}
        with (
            studies_in_one_line(session.paths),
            RunProgress(console, forecast, titles, session.problem.folds) as progress,
        ):
            scheduler = Scheduler(
                session.problem,
                store,
                executor,
                Observers(progress, Tracking(session.name, {} if trackers is None else trackers, console)),
                session.fingerprint,
                test_curves=session.experiment.test_curves,
            )
            scheduler.run(protocols)
    table = stored_table(store, session.fingerprint)
    return Finished(table, write_table(table, session), forecast.made_now, forecast.n_done - forecast.made_now)


def count_told_trials(studies: Mapping[str, Study], store: Store, forecast: Forecast) -> None:
    """Counts the trainings of finished trials as done: a resumed search does not ask for them again."""
    for key, study in studies.items():
        for spec, over in study.asked_specs():
            if over:
                known = store.fold_result(spec.fingerprint)
                forecast.finished(key, known.wall_time if known else 0.0, now=False)


def _say_start(session: Session, executor: Executor, console: Console) -> None:
    """What is about to be done, and with what."""
    dataset, problem = session.problem.dataset, session.problem
    console.print(f"[bold]{session.experiment.title}[/bold]")
    split = problem.split
    fold = split.folds[0]
    console.print(
        f"{dataset.name}: {len(dataset.images)} images of {dataset.n_classes} classes; {len(fold.train)} train, "
        f"{len(fold.validation)} validation, {len(split.test)} test classes; data {dataset.fingerprint[:12]}",
        highlight=False,
    )
    if dataset.skipped:
        console.print(f"left out, cannot be decoded: {', '.join(dataset.skipped)}", highlight=False)
    console.print(
        f"device {executor.device}, {executor.workers} training(s) side by side, {threads_per_training()} thread(s) "
        f"each; nearest neighbours by {backend()}; store {session.paths.store}",
        highlight=False,
    )


def stored_table(store: Store, experiment: str) -> Table:
    """The table of an experiment by its fingerprint, from the store alone."""
    return table_of(MeasuredExperiment.from_store(store, experiment))


def write_table(table: Table, session: Session) -> tuple[Path, ...]:
    """The table as Markdown, CSV and LaTeX."""
    folder = session.paths.tables
    files = []
    for suffix, form in (("md", "markdown"), ("csv", "csv"), ("tex", "latex")):
        path = folder / f"{session.name.replace('/', '_')}.{suffix}"
        write_whole(path, WRITERS[form](table))
        files.append(path)
    return tuple(files)
