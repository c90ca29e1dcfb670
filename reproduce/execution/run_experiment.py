"""Runs an experiment: its search, its reproductions, its test evaluations and its table."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console

from protocols.datasets.notes_on_data import note_on_queries
from protocols.datasets.split_file import SPLIT_FILE
from protocols.metrics.faiss_search import backend
from protocols.processes import threads_per_training
from protocols.search.study import Study
from protocols.users_files.kept_sources import keep_sources
from reports.tables.formats import WRITERS
from reports.tables.result_table import table_of
from reports.tables.table import Table
from reproduce import interrupts
from reproduce.execution.devices import prepare_process
from reproduce.execution.executor import Executor
from reproduce.execution.failed_jobs import HangWatch
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.session import Session, data_of
from reproduce.forecast.plan_trainings import expected_test
from reproduce.monitoring.observer import Observers
from reproduce.monitoring.progress import RunProgress
from reproduce.monitoring.time_left import Forecast
from reproduce.monitoring.trackers import Tracker, Tracking
from reproduce.outputs.result_files import link_latest, own_name
from results.records.artifacts import recording_path, weights_path
from results.spec.data_choice import FEATURES, OWN_DATA, DrawnSplit
from results.store.experiment_results import MeasuredExperiment
from results.store.patience import LockWait
from results.store.store import IncompleteExperimentError, Store
from results.whole_files import try_out, write_whole


def seen_after(session: Session) -> tuple[str, ...]:
    """Return with how many searches or runs the experiment was complete before, as phrases such as `2 searches`.

    Somebody who adds searches or runs because of the results is peeking. The suite cannot tell why they are added, so
    it notes all cases. Another comparison, or other methods, make no other experiment here.
    """
    stored, ours = session.store.experiments(), session.experiment
    seen = set()
    for fingerprint in stored.loc[stored["name"] == session.name, "fingerprint"].astype(str):
        try:
            summary = session.store.experiment(fingerprint)
        except IncompleteExperimentError:
            continue
        search = summary.experiment.search
        if (search.searches, summary.reproductions) >= (ours.search.searches, ours.reproductions):
            continue
        raised = summary.experiment.model_copy(
            update={
                "reproductions": ours.reproductions,
                "search": search.model_copy(update={"searches": ours.search.searches}),
                "primary": ours.primary,
                "methods": ours.methods,
                "variants": ours.variants,
            }
        )
        same = raised.fingerprint(session.name, session.problem.dataset.fingerprint) == session.fingerprint
        if same and len(session.store.experiment_runs(fingerprint)) >= sum(summary.runs.values()) > 0:
            more_searches = search.searches < ours.search.searches
            seen.add((search.searches, "search") if more_searches else (summary.reproductions, "run"))
    plural = {"search": "searches", "run": "runs"}
    return tuple(f"{count} {unit if count == 1 else plural[unit]}" for count, unit in sorted(seen))


@dataclass(frozen=True)
class Finished:
    """The outcome of a run.

    Attributes:
        table: The experiment's table.
        files: The files with the table.
        made: Number of trainings made in this run.
        found: Number of trainings that were in the store before.
        refused: Why methods have no runs, by method: their own code refuses the settings.
    """

    table: Table
    files: tuple[Path, ...]
    made: int
    found: int
    refused: Mapping[str, str]


def run(
    session: Session,
    start: Callable[[], Executor],
    console: Console,
    trackers: dict[str, Tracker] | None = None,
    training_timeout: float | None = None,
) -> Finished:
    """Run the part of an experiment that is not in the store, and write the experiment's table.

    `start` opens the executor, which is closed at the end. A tracker that fails is removed from `trackers`. A training
    that hangs for `training_timeout` times its forecast is ended and tried again (`HangWatch`).

    Raises:
        OSError: The files of the table cannot be written; nothing was trained.
        WorkFailedError: A job cannot be done; everything finished before is in the store.
        KeyboardInterrupt: Somebody asked this process to stop.
    """
    for path in table_files(session).values():
        try_out(path)
    with closing(start()) as executor, interrupts.deferred():
        say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
        store = session.store
        store.wait_while_locked(LockWait(say, interrupts.requested))
        methods = session.studies(store.searches)
        keep_sources(session.paths.artifacts)
        forecast = _forecast(session, methods, executor)
        _say_start(session, executor, console)
        summary = session.summary().model_copy(update={"seen_after": seen_after(session)})
        store.put_experiment(session.fingerprint, session.name, summary)
        store.searches.enlist(session.fingerprint, {key: _identities(study) for key, study in methods.items()})
        # The search samples in this process, so its threads must not depend on the number of workers either.
        prepare_process(executor.device)
        with RunProgress(console, forecast, dict(session.titles), session.problem.folds) as progress:
            observers = Observers(progress, Tracking(session.name, {} if trackers is None else trackers, console))
            scheduler = Scheduler(
                session.problem,
                store,
                executor,
                observers,
                session.fingerprint,
                row_problems=session.row_problems,
                test_curves=session.experiment.test_curves,
                recordings=session.experiment.recordings,
                say=say,
                hang_watch=None if training_timeout is None else HangWatch(training_timeout),
            )
            names = {key: study.study_names() for key, study in methods.items()}
            scheduler.run({key: session.protocol.run(study) for key, study in methods.items()}, names)
    interrupts.stop_if_requested()
    if session.experiment.recordings is not None:
        _say_unrecorded(store, session.fingerprint, console)
    table = stored_table(store, session.fingerprint)
    found = forecast.n_done - forecast.made_now
    return Finished(table, write_table(table, session), forecast.made_now, found, scheduler.refused)


def _identities(study: Study) -> list[tuple[str, dict[str, JsonValue]]]:
    return [(search.name, search.identity) for search in study.searches() if search.name is not None]


def _forecast(session: Session, studies: dict[str, Study], executor: Executor) -> Forecast:
    """Return the numbers of trainings and tests, of which none is counted as done yet."""
    trainings = {key: session.protocol.trainings_of(study) for key, study in studies.items()}
    tests = {key: study.n_runs for key, study in studies.items()}
    expected = expected_test(session.problem, str(executor.device))
    return Forecast(trainings, executor.workers, tests=tests, expected_test=expected)


def _say_unrecorded(store: Store, experiment: str, console: Console) -> None:
    if count := unrecorded(store, experiment):
        console.print(
            f"{count} training(s) have no recorded embeddings, because they were in the store before; for figures of "
            "them, run the experiment with a new --store and --artifacts",
            highlight=False,
        )


def unrecorded(store: Store, experiment: str) -> int:
    """Count the trainings of an experiment's runs that have no recording beside their weights."""
    trainings = MeasuredExperiment.from_store(store, experiment, trainings=True).trainings.values()
    return sum(not recording_path(weights_path(store.artifacts, spec)).exists() for spec, _ in trainings)


def _say_start(session: Session, executor: Executor, console: Console) -> None:
    dataset, problem = session.problem.dataset, session.problem
    console.print(session.experiment.title, style="bold", markup=False, highlight=False)
    split = problem.split
    fold = split.folds[0]
    samples = "rows" if dataset.name == FEATURES else "images"
    console.print(
        f"{dataset.name}: {len(dataset.images)} {samples} of {dataset.n_classes} classes; {len(fold.train)} train, "
        f"{len(fold.validation)} validation, {len(split.test)} test classes; data {dataset.fingerprint[:12]}",
        highlight=False,
    )
    for note in notes_on_data(session):
        console.print(note, highlight=False, markup=False)
    threads = threads_per_training(executor.device)
    console.print(
        f"device {executor.device}, {executor.workers} training(s) at a time, {threads} thread(s) "
        f"each; nearest neighbours by {backend(str(executor.device))}; store {session.paths.shown_store}",
        highlight=False,
    )


def notes_on_data(session: Session) -> list[str]:
    """Say what is not usual about the classes: what is left out, nested folders, a split, drawn halves, queries."""
    dataset, split, data = session.problem.dataset, session.experiment.split, data_of(session.problem)
    notes = [f"left out: {phrase}" for phrase in data.left_out]
    if data.equal_files:
        notes.append(f"the data have {data.equal_files}")
    if nested := [name for name in dataset.class_names if dataset.name == "folder" and "/" in name]:
        notes.append(f"{len(nested)} classes are nested folders, named by their whole path, such as {nested[0]}")
    if dataset.is_split_given and dataset.name in OWN_DATA:
        notes.append(f"training and test classes are those of {session.experiment.dataset.split or SPLIT_FILE}")
    elif isinstance(split, DrawnSplit):
        notes.append(f"the test classes are drawn at random with the seed {split.seed}")
    if queries := note_on_queries(dataset.images.labels, dataset.is_query, dataset.trainval_classes or 0):
        notes.append(queries)
    return notes


def stored_table(store: Store, experiment: str) -> Table:
    """Return the results table of a stored experiment."""
    return table_of(MeasuredExperiment.from_store(store, experiment, trainings=True))


def write_table(table: Table, session: Session) -> tuple[Path, ...]:
    """Write a table as Markdown, CSV and LaTeX into the session's folder of tables, and return the files.

    They carry the experiment's identity; names without it lead to the latest experiment of the name.
    """
    files = table_files(session)
    for form, path in files.items():
        write_whole(path, WRITERS[form](table))
    link_latest(session.name, session.fingerprint, session.store, list(files.values()))
    return tuple(files.values())


def table_files(session: Session) -> dict[str, Path]:
    """Return the files that a run writes its table to, by format."""
    suffixes = {"markdown": "md", "csv": "csv", "latex": "tex"}
    stem = own_name(session.name, session.fingerprint)
    return {form: session.paths.tables / f"{stem}.{suffix}" for form, suffix in suffixes.items()}
