"""Runs the protocols of all methods: looks up each job in the store, executes missing jobs, stores every outcome.

Methods run at the same time: while one method waits for the last fold of a trial, the workers train for another.
"""

import errno
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from protocols.evaluation.test_data import TestData, test_data
from protocols.jobs import EvaluateJob, Job, Outcome, TrainJob, Work
from protocols.problem import Problem
from protocols.source_files import SourceError
from protocols.splits import SplitError
from protocols.training.build_method import MethodError
from reproduce.errors import WorkFailedError
from reproduce.execution.executor import Executor
from reproduce.execution.tasks import Done, EvaluateTask, Exhibition, Task, Trained, TrainTask
from reproduce.monitoring.observer import Observer
from results.artifacts import exhibit_path, weights_path
from results.experiment_spec import RecordingSettings
from results.records import RunRecord
from results.store import Store

ATTEMPTS = 3
"""How often a job is tried if it fails for reasons outside the method."""


@dataclass(eq=False)
class _Track:
    """The protocol of one method, the jobs that it waits for, and their outcomes by index.

    Attributes:
        ahead: Trainings for idle workers, which the protocol may need next. It does not wait for them.
    """

    method: str
    problem: Problem
    work: Work[list[RunRecord]]
    jobs: list[Job] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    ahead: list[TrainJob] = field(default_factory=list)

    def awaited(self, fingerprint: str) -> list[int]:
        """Indices of the jobs with this fingerprint that have no outcome yet."""
        return [i for i, job in enumerate(self.jobs) if i not in self.outcomes and job.fingerprint == fingerprint]


class Scheduler:
    """Runs the protocols of several methods.

    Args:
        problem: The dataset, its split, and the settings that all methods share.
        store: Where outcomes are looked up and stored.
        executor: Carries out the jobs that are not in the store.
        observer: Gets every outcome and the progress of running trainings.
        experiment: Fingerprint of the experiment. Finished runs are listed under it at once, so that an unfinished
            experiment has a table too. None lists no runs.
        row_problems: The problems of methods with conditions of their own, by method.
        test_curves: Whether test scores are recorded during the trainings of the reproductions.
        recordings: Embeddings to keep during the trainings of the reproductions; None keeps none.
    """

    def __init__(
        self,
        problem: Problem,
        store: Store,
        executor: Executor,
        observer: Observer,
        experiment: str | None = None,
        *,
        row_problems: Mapping[str, Problem] | None = None,
        test_curves: bool = False,
        recordings: RecordingSettings | None = None,
    ) -> None:
        self.experiment, self.test_curves, self.recordings = experiment, test_curves, recordings
        self.store, self.executor, self.observer = store, executor, observer
        self.problem, self.row_problems = problem, row_problems or {}
        self._waiting: deque[tuple[_Track, Job]] = deque()
        self._running: dict[Future[Done], tuple[_Track, Job]] = {}
        self._tracks: list[_Track] = []
        self._made_ahead: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._finished: dict[str, list[RunRecord]] = {}

    def run(self, protocols: Mapping[str, Work[list[RunRecord]]]) -> dict[str, list[RunRecord]]:
        """Run the protocols to their end.

        Args:
            protocols: The protocols by the methods' keys.

        Returns:
            The runs of every method, by the method's key.

        Raises:
            WorkFailedError: A job cannot be done; everything finished before is in the store.
            StoreError: The store cannot be read or written.
        """
        self._tracks = [
            _Track(method, self.row_problems.get(method, self.problem), work) for method, work in protocols.items()
        ]
        for track in self._tracks:
            self._start(track)
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self.executor.capacity:
                if not self._submit(*self._waiting[0]):
                    break
                self._waiting.popleft()
            self._use_idle_workers()
            done, _ = wait(self._running, timeout=0.5, return_when=FIRST_COMPLETED)
            self.observer.ticks(self.executor.ticks())
            self._collect(done)
        return self._finished

    def _start(self, track: _Track) -> None:
        try:
            self._take_jobs(track, next(track.work))
        except StopIteration as stop:
            self._finished[track.method] = stop.value

    def _take_jobs(self, track: _Track, jobs: list[Job]) -> None:
        """Queue a protocol's jobs that are not in the store. If the store has all outcomes, continue the protocol."""
        while True:
            ahead = [job for job in jobs if isinstance(job, TrainJob) and job.if_idle]
            track.jobs, track.outcomes = [job for job in jobs if job not in ahead], {}
            self._replace_ahead(track, ahead)
            under_way = {job.fingerprint for running, job in self._running.values() if running is track}
            for index, job in enumerate(track.jobs):
                outcome = self._stored_outcome(job)
                if outcome is not None:
                    self._add_outcome(track, index, outcome, from_store=job.fingerprint not in self._made_ahead)
                elif job.fingerprint not in under_way:
                    self._waiting.append((track, job))
            if len(track.outcomes) < len(track.jobs):
                return
            jobs = track.work.send([track.outcomes[index] for index in range(len(track.jobs))])

    def _replace_ahead(self, track: _Track, ahead: list[TrainJob]) -> None:
        """Set the trainings for idle workers, and tell the observer which of the former ones are not needed."""
        kept = {job.fingerprint for job in (*track.jobs, *ahead)}
        spared = [job.fingerprint for job in track.ahead if job.fingerprint not in kept]
        track.ahead = ahead
        if spared:
            self.observer.spared(track.method, spared)

    def _use_idle_workers(self) -> None:
        """Submit trainings that may be needed next, as long as a worker would be idle."""
        under_way = {job.fingerprint for _, job in self._running.values()}
        candidates = [(track, job) for track in self._tracks for job in track.ahead]
        # First the next fold of every method, then the folds after it.
        for track, job in sorted(candidates, key=lambda candidate: candidate[0].ahead.index(candidate[1])):
            if self._waiting or len(self._running) >= self.executor.workers:
                return
            if job.fingerprint in under_way or self._stored_outcome(job) is not None:
                continue
            if not self._submit(track, job):
                return

    def _stored_outcome(self, job: Job) -> Outcome | None:
        """Return a job's outcome from the store; None if the job must be executed."""
        if isinstance(job, EvaluateJob):
            return self.store.run(job.fingerprint)
        result = self.store.fold_result(job.spec.fingerprint)
        if result is None or job.run is None:
            return result
        # A reproduction's training is done if the test scores exist, or the weights that are needed to compute them.
        tested = self.store.run(job.run) is not None
        return result if tested or weights_path(self.store.artifacts, job.spec).exists() else None

    def _submit(self, track: _Track, job: Job) -> bool:
        """Submit a job; return False if a worker has died."""
        try:
            future = self.executor.submit(self._task(track.problem, job))
        except BrokenProcessPool as error:
            if not self._running:
                self._handle_failure(track, job, error)
                self.executor.restart()
            return False
        self._running[future] = (track, job)
        return True

    def _task(self, problem: Problem, job: Job) -> Task:
        artifacts = self.store.artifacts
        if isinstance(job, TrainJob):
            weights = None if job.run is None else weights_path(artifacts, job.spec)
            observed_on = _test_data(problem) if self.test_curves and job.run is not None else None
            recordings = None if job.run is None else self.recordings
            return TrainTask(job, problem.training_data(job.spec), weights, observed_on, recordings)
        paths = tuple(weights_path(artifacts, spec) for spec in job.specs)
        return EvaluateTask(job, _test_data(problem), paths, self._exhibition(problem, job))

    def _exhibition(self, problem: Problem, job: EvaluateJob) -> Exhibition | None:
        """Return the exhibit's inputs for the first reproduction of a method; None for the others."""
        if job.run > 0 or job.search > 0:
            return None
        train = problem.training_data(job.specs[0]).train
        path = exhibit_path(self.store.artifacts, job.fingerprint)
        return Exhibition(train, problem.dataset.class_names, path)

    def _collect(self, done: set[Future[Done]]) -> None:
        pool_broke = False
        # Successes first: a failure may end the run, and finished work must be stored before that.
        for future in sorted(done, key=lambda future: future.exception() is not None):
            track, job = self._running.pop(future)
            error = future.exception()
            if error is None:
                self._store(track, job, future.result())
                continue
            pool_broke |= isinstance(error, BrokenProcessPool)
            if track.awaited(job.fingerprint):
                self._handle_failure(track, job, error)
                self._waiting.appendleft((track, job))
        if pool_broke:
            self._waiting.extendleft(
                (track, job) for track, job in self._running.values() if track.awaited(job.fingerprint)
            )
            self._running.clear()
            self.executor.restart()

    def _add_outcome(self, track: _Track, index: int, outcome: Outcome, *, from_store: bool) -> None:
        """Add the outcome of a job to its track, list a run under the experiment, and inform the observer."""
        track.outcomes[index] = outcome
        if isinstance(outcome, RunRecord) and self.experiment is not None:
            self.store.enlist(self.experiment, track.method, outcome.run, outcome.fingerprint, outcome.search)
        self.observer.job_done(track.method, track.jobs[index], outcome, from_store=from_store)

    def _store(self, track: _Track, job: Job, done: Done) -> None:
        """Store a new outcome. If it is the last one that the protocol waits for, continue the protocol."""
        if isinstance(done, Trained):
            assert isinstance(job, TrainJob)
            # The curve first: once the result is stored, the training is never repeated, and a curve would be lost.
            if done.test_curve is not None:
                self.store.put_test_curve(done.test_curve)
            self.store.put_fold(job.spec, done.result)
        else:
            self.store.put_run(done)
        outcome: Outcome = done.result if isinstance(done, Trained) else done
        awaited = track.awaited(job.fingerprint)
        if not awaited:
            self._made_ahead.add(job.fingerprint)
        for index in awaited:
            self._add_outcome(track, index, outcome, from_store=False)
        if awaited and len(track.outcomes) == len(track.jobs):
            try:
                self._take_jobs(track, track.work.send([track.outcomes[i] for i in range(len(track.jobs))]))
            except StopIteration as stop:
                self._finished[track.method] = stop.value

    def _handle_failure(self, track: _Track, job: Job, error: BaseException) -> None:
        """Store a failure. Return if the job may be tried again; raise WorkFailedError if not."""
        name = job.fingerprint
        description = f"fold {job.spec.fold}" if isinstance(job, TrainJob) else f"test of {job.run_name}"
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise WorkFailedError(
                f"{track.method}, {description}: the disk is full; free some space and run the same command again, "
                "everything finished is kept"
            ) from error
        if isinstance(error, MethodError | SplitError | SourceError):
            raise WorkFailedError(f"{track.method}, {description}: {error}") from error
        self.store.put_failure(name, reason)
        self._attempts[name] = self._attempts.get(name, 0) + 1
        if self._attempts[name] >= ATTEMPTS:
            raise WorkFailedError(
                f"{track.method}, {description}: failed {ATTEMPTS} times, last with {reason}; everything finished is "
                "kept, run the same command to try again"
            ) from error


def _test_data(problem: Problem) -> TestData:
    return test_data(problem.dataset, problem.split)
