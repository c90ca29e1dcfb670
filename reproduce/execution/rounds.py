"""Runs the methods of an experiment in rounds, and gives no more runs to methods that are clearly behind the leader."""

from collections.abc import Iterable, Mapping

from protocols.jobs import Job, Outcome
from protocols.search.study import Study
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.session import Session
from reproduce.execution.told_trials import works
from reproduce.monitoring.observer import Observer, Tick
from reproduce.monitoring.time_left import Forecast
from results.experiment_results import MeasuredExperiment
from results.experiment_summary import ExperimentSummary, StoppedMethod
from results.statistics.early_stopping import boundary, stopped
from results.statistics.nested_runs import ValueKey
from results.statistics.primary_comparison import primary_score
from results.statistics.run_values import run_values
from results.store import Store


class OncePerJob:
    """Passes the outcome of a job on only once, since later rounds look up the outcomes of earlier ones again.

    Args:
        observer: The observer.
        seen: Method and fingerprint of the jobs that were counted before.
    """

    def __init__(self, observer: Observer, seen: Iterable[tuple[str, str]] = ()) -> None:
        self.observer = observer
        self._seen = set(seen)

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Pass the outcome on if it is new."""
        if (method, job.fingerprint) not in self._seen:
            self._seen.add((method, job.fingerprint))
            self.observer.job_done(method, job, outcome, from_store=from_store)

    def spared(self, method: str, fingerprints: list[str]) -> None:
        """Pass on which trainings a trial does not need."""
        self.observer.spared(method, fingerprints)

    def ticks(self, ticks: list[Tick]) -> None:
        """Pass the progress of trainings on."""
        self.observer.ticks(ticks)


def run_in_rounds(
    session: Session,
    studies: Mapping[str, Study],
    scheduler: Scheduler,
    store: Store,
    forecast: Forecast,
    summary: ExperimentSummary,
) -> None:
    """Run the first runs of all methods, then one more run of each method that is not clearly behind, and so on.

    Everything is looked up in the store first, so an interrupted experiment makes the same decisions again.

    Args:
        session: The opened experiment, with `first_reproductions`.
        studies: The studies by the methods' keys, with the budget of all runs.
        scheduler: Runs the protocols.
        store: Where the stopped methods are noted.
        forecast: Gets the number of trainings and tests that remain after a stop.
        summary: The experiment's summary, without stopped methods.
    """
    first, at_most = session.experiment.first_reproductions, session.experiment.reproductions
    if first is None:
        raise ValueError("the experiment makes all runs of every method at once")
    comparable = session.experiment.comparable_rows()
    rivals = [key for key, study in studies.items() if key in comparable and study.n_reproductions == at_most]
    active, names = dict(studies), {key: study.study_names() for key, study in studies.items()}
    limit = boundary(len(rivals), first, at_most) if len(rivals) > 1 else None
    for runs in range(first, at_most + 1):
        shortened = {key: study.with_runs(runs) for key, study in active.items()}
        scheduler.run(works(session.protocol, shortened, store, scheduler.observer), names)
        if limit is None or runs == at_most:
            continue
        values = _values(store, session.fingerprint, [key for key in rivals if key in active], runs)
        for stop in stopped(values, limit):
            study = active.pop(stop.method).with_runs(runs)
            forecast.totals[stop.method] = session.protocol.trainings_of(study)
            forecast.tests[stop.method] = study.n_runs
            summary = _noted(summary, stop)
            store.put_experiment(session.fingerprint, session.name, summary)


def _values(store: Store, experiment: str, methods: list[str], runs: int) -> dict[str, dict[ValueKey, float]]:
    """The primary scores of the methods in the first runs. The store may have later runs from an earlier start."""
    measured = MeasuredExperiment.from_store(store, experiment)
    score = primary_score(measured)
    first_runs = [record for record in measured.records if record.run < runs]
    values = run_values(first_runs, score.metric, score.embeddings)
    return {key: values[key] for key in methods}


def _noted(summary: ExperimentSummary, stop: StoppedMethod) -> ExperimentSummary:
    runs = {**summary.runs, stop.method: stop.runs}
    return summary.model_copy(update={"stopped": (*summary.stopped, stop), "runs": runs})
