"""Runs an experiment: its search, its reproductions, its test evaluations and its table."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from protocols.datasets.split_file import SPLIT_FILE
from protocols.kept_sources import keep_sources
from protocols.metrics.neighbours import backend
from protocols.search.study import Study
from reports.tables.formats import WRITERS
from reports.tables.result_table import table_of
from reports.tables.table import Table
from reproduce import interrupts
from reproduce.execution.devices import prepare_process, threads_per_training
from reproduce.execution.earlier_data import data_of
from reproduce.execution.earlier_looks import known_after
from reproduce.execution.executor import Executor
from reproduce.execution.hang_watch import HangWatch
from reproduce.execution.plan_trainings import expected_test
from reproduce.execution.rounds import OncePerJob, run_in_rounds
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.session import Session
from reproduce.execution.told_trials import count_told_trials, works
from reproduce.monitoring.observer import Observers
from reproduce.monitoring.progress import RunProgress
from reproduce.monitoring.time_left import Forecast
from reproduce.monitoring.trackers import Tracker, Tracking
from reproduce.patient_studies import PatientStudies
from reproduce.storage import open_store, open_studies, studies_in_one_line
from results.artifacts import weights_path
from results.data_choice import DrawnSplit
from results.experiment_results import MeasuredExperiment
from results.experiment_summary import ExperimentSummary
from results.feature_settings import FEATURES
from results.patience import LockWait
from results.recordings import recording_path
from results.store import Store
from results.whole_files import write_whole


@dataclass(frozen=True)
class Finished:
    """The outcome of a run.

    Attributes:
        table: The experiment's table.
        files: The files with the table.
        made: Number of trainings made in this run.
        found: Number of trainings that were in the store before.
    """

    table: Table
    files: tuple[Path, ...]
    made: int
    found: int


def run(
    session: Session,
    start: Callable[[], Executor],
    console: Console,
    trackers: dict[str, Tracker] | None = None,
    training_timeout: float | None = None,
) -> Finished:
    """Run the part of an experiment that is not in the store, and write the experiment's table.

    Args:
        session: The opened experiment.
        start: Function that opens the executor; the executor is closed at the end.
        console: Where the progress is shown.
        trackers: Trackers by name; they get a report of every new training and test. A tracker that fails is removed.
        training_timeout: A training that reports nothing for more than this multiple of the forecast of a whole
            training is ended and tried again; see `HangWatch`. None ends none.

    Returns:
        The table, its files, and the number of trainings.

    Raises:
        WorkFailedError: A job cannot be done; everything finished before is in the store.
        StoreError: The store cannot be read or written.
        KeyboardInterrupt: Somebody asked this process to stop.
    """
    with closing(start()) as executor, interrupts.deferred(), studies_in_one_line(session.paths):
        say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
        store, studies = _opened(session, say)
        methods = session.studies(studies)
        keep_sources(session.paths.artifacts)
        forecast = _forecast(session, methods, executor)
        _say_start(session, executor, console)
        seen = {"known_after": known_after(session, store), "data": data_of(session.problem.dataset)}
        summary = session.summary().model_copy(update=seen)
        store.put_experiment(session.fingerprint, session.name, summary)
        # The search samples in this process, so its threads must not depend on the number of workers either.
        prepare_process(executor.device)
        titles = {card.key: card.title for card in session.cards}
        with RunProgress(console, forecast, titles, session.problem.folds) as progress:
            counted = count_told_trials(methods, store, forecast, progress)
            observers = Observers(progress, Tracking(session.name, {} if trackers is None else trackers, console))
            scheduler = Scheduler(
                session.problem,
                store,
                executor,
                OncePerJob(observers, counted),
                session.fingerprint,
                row_problems=session.row_problems,
                test_curves=session.experiment.test_curves,
                recordings=session.experiment.recordings,
                say=say,
                hang_watch=None if training_timeout is None else HangWatch(training_timeout),
            )
            _run_protocols(session, methods, scheduler, store, forecast, summary)
    interrupts.stop_if_requested()
    if session.experiment.recordings is not None:
        _say_unrecorded(store, session.fingerprint, console)
    table = stored_table(store, session.fingerprint)
    return Finished(table, write_table(table, session), forecast.made_now, forecast.n_done - forecast.made_now)


def _opened(session: Session, say: Callable[[str], None]) -> tuple[Store, PatientStudies]:
    """Open the store and the studies, both so that they wait for a locked file."""
    store, studies = open_store(session.paths), open_studies(session.paths)
    studies.lock_wait = LockWait(say, interrupts.requested)
    store.wait_while_locked(studies.lock_wait)
    return store, studies


def _forecast(session: Session, studies: dict[str, Study], executor: Executor) -> Forecast:
    """Return the numbers of trainings and tests, of which none is counted as done yet."""
    trainings = {key: session.protocol.trainings_of(study) for key, study in studies.items()}
    tests = {key: study.n_runs for key, study in studies.items()}
    expected = expected_test(session.problem, str(executor.device))
    return Forecast(trainings, executor.workers, tests=tests, expected_test=expected)


def _run_protocols(
    session: Session,
    studies: dict[str, Study],
    scheduler: Scheduler,
    store: Store,
    forecast: Forecast,
    summary: ExperimentSummary,
) -> None:
    """Run all methods to their end, in rounds if methods that are clearly behind get no more runs."""
    if session.experiment.first_reproductions is None:
        names = {key: study.study_names() for key, study in studies.items()}
        scheduler.run(works(session.protocol, studies, store, scheduler.observer), names)
    else:
        run_in_rounds(session, studies, scheduler, store, forecast, summary)


def _say_unrecorded(store: Store, experiment: str, console: Console) -> None:
    """Say how many trainings have no recording, if there are any."""
    if count := unrecorded(store, experiment):
        console.print(
            f"{count} training(s) have no recorded embeddings, because they were in the store before; for figures of "
            "them, run the experiment with a new --store and --artifacts",
            highlight=False,
        )


def unrecorded(store: Store, experiment: str) -> int:
    """Count the trainings of an experiment's runs that have no recording beside their weights.

    Args:
        store: The store.
        experiment: Fingerprint of the experiment.
    """
    trainings = MeasuredExperiment.from_store(store, experiment, trainings=True).trainings.values()
    return sum(not recording_path(weights_path(store.artifacts, spec)).exists() for spec, _ in trainings)


def _say_start(session: Session, executor: Executor, console: Console) -> None:
    """Print the title, the dataset with its split, the device and the store."""
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
    for note in notes_on_classes(session):
        console.print(note, highlight=False, markup=False)
    if dataset.skipped:
        console.print(f"left out because they cannot be decoded: {', '.join(dataset.skipped)}", highlight=False)
    console.print(
        f"device {executor.device}, {executor.workers} training(s) at a time, {threads_per_training()} thread(s) "
        f"each; nearest neighbours by {backend(str(executor.device))}; store {session.paths.shown_store}",
        highlight=False,
    )


def notes_on_classes(session: Session) -> list[str]:
    """Say what is not usual about the classes: nested folders, the user's split, or halves drawn at random."""
    dataset, split = session.problem.dataset, session.experiment.split
    notes = []
    if nested := [name for name in dataset.class_names if dataset.name == "folder" and "/" in name]:
        notes.append(f"{len(nested)} classes are nested folders, named by their whole path, such as {nested[0]}")
    if dataset.is_split_given:
        notes.append(f"training and test classes are those of {session.experiment.dataset.split or SPLIT_FILE}")
    elif isinstance(split, DrawnSplit):
        notes.append(f"the test classes are drawn at random with the seed {split.seed}")
    return notes


def stored_table(store: Store, experiment: str) -> Table:
    """Return the results table of a stored experiment.

    Args:
        store: The store.
        experiment: Fingerprint of the experiment.
    """
    return table_of(MeasuredExperiment.from_store(store, experiment, trainings=True))


def write_table(table: Table, session: Session) -> tuple[Path, ...]:
    """Write a table as Markdown, CSV and LaTeX into the session's folder of tables, and return the files."""
    folder = session.paths.tables
    files = []
    for suffix, form in (("md", "markdown"), ("csv", "csv"), ("tex", "latex")):
        path = folder / f"{session.name.replace('/', '_')}.{suffix}"
        write_whole(path, WRITERS[form](table))
        files.append(path)
    return tuple(files)
