"""Runs the protocols of all methods: looks up each job in the store, executes missing jobs, stores every outcome.

Methods run at the same time: while one method waits for the last fold of a trial, the workers train for another. Work
that another run on the same store is doing is put off.
"""

import errno
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from protocols.evaluation.test_data import TestData, test_data
from protocols.jobs import EvaluateJob, Job, Outcome, TrainJob, Work
from protocols.problem import Problem
from protocols.source_files import SourceError
from protocols.splits import SplitError
from protocols.training.build_method import MethodError
from reproduce import interrupts
from reproduce.errors import WorkFailedError
from reproduce.execution.executor import Executor
from reproduce.execution.shared_work import SharedWork
from reproduce.execution.tasks import Done, EvaluateTask, Exhibition, Task, Trained, TrainTask
from reproduce.monitoring.observer import Observer
from results.artifacts import exhibit_path, weights_path
from results.experiment_spec import RecordingSettings
from results.records import RunRecord
from results.store import Store

ATTEMPTS = 3
"""How often a job is tried if it fails for reasons outside the method."""

_LOOK_AGAIN_SECONDS = 1.0
"""How often the work of other runs is looked at again."""


@dataclass
class _Track:
    """The protocol of one method, the jobs that it waits for, and their outcomes by index."""

    method: str
    problem: Problem
    work: Work[list[RunRecord]]
    studies: tuple[str, ...]
    jobs: list[Job] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)


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
        say: Prints a line about work that another run does.
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
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.experiment, self.test_curves, self.recordings = experiment, test_curves, recordings
        self.store, self.executor, self.observer = store, executor, observer
        self.problem, self.row_problems, self.say = problem, row_problems or {}, say
        self._not_started: list[_Track] = []
        self._elsewhere: list[tuple[_Track, int]] = []
        self._next_look = 0.0
        self._waiting: deque[tuple[_Track, int]] = deque()
        self._running: dict[Future[Done], tuple[_Track, int]] = {}
        self._attempts: dict[str, int] = {}
        self._finished: dict[str, list[RunRecord]] = {}

    def run(
        self, protocols: Mapping[str, Work[list[RunRecord]]], studies: Mapping[str, tuple[str, ...]] | None = None
    ) -> dict[str, list[RunRecord]]:
        """Run the protocols to their end.

        Args:
            protocols: The protocols by the methods' keys.
            studies: Names of the studies that the methods' searches write to, by the methods' keys. A method starts
                when no other run works on its studies.

        Returns:
            The runs of every method, by the method's key.

        Raises:
            WorkFailedError: A job cannot be done; everything finished before is in the store.
            StoreError: The store cannot be read or written.
            KeyboardInterrupt: Somebody asked this process to stop.
        """
        names, self._next_look = studies or {}, 0.0
        self._not_started = [
            _Track(method, self.row_problems.get(method, self.problem), work, names.get(method, ()))
            for method, work in protocols.items()
        ]
        with self.store.leases() as leases:
            self._shared = SharedWork(leases, self.say)
            while self._not_started or self._elsewhere or self._waiting or self._running:
                self._look_at_other_runs()
                while self._waiting and len(self._running) < self.executor.capacity and not interrupts.requested():
                    if not self._submit():
                        break
                done = self._wait()
                if interrupts.requested():
                    self._keep_finished(done)
                    raise KeyboardInterrupt
                self.observer.ticks(self.executor.ticks())
                self._collect(done)
        return self._finished

    def _look_at_other_runs(self) -> None:
        """Start the methods that no other run searches for, and queue the jobs that others had taken again."""
        if time.monotonic() < self._next_look:
            return
        for track in list(self._not_started):
            if not interrupts.requested() and self._shared.begin_searches(track.method, track.studies):
                self._not_started.remove(track)
                self._start(track)
        self._waiting.extend(self._elsewhere)
        self._elsewhere.clear()
        self._next_look = time.monotonic() + _LOOK_AGAIN_SECONDS

    def _wait(self) -> set[Future[Done]]:
        """Wait a moment for a job to finish, but not if another job can be submitted already."""
        if self._running:
            return wait(self._running, timeout=0.5, return_when=FIRST_COMPLETED)[0]
        if not self._waiting and (self._not_started or self._elsewhere):
            time.sleep(0.1)
        return set()

    def _start(self, track: _Track) -> None:
        try:
            self._take_jobs(track, next(track.work))
        except StopIteration as stop:
            self._finish(track, stop.value)

    def _finish(self, track: _Track, records: list[RunRecord]) -> None:
        self._finished[track.method] = records
        self._shared.end_searches(track.studies)

    def _take_jobs(self, track: _Track, jobs: list[Job]) -> None:
        """Queue a protocol's jobs that are not in the store. If the store has all outcomes, continue the protocol."""
        while True:
            track.jobs, track.outcomes = jobs, {}
            for index, job in enumerate(jobs):
                outcome = self._stored_outcome(job)
                if outcome is None:
                    self._waiting.append((track, index))
                else:
                    self._add_outcome(track, index, outcome, from_store=True)
            if len(track.outcomes) < len(jobs):
                return
            jobs = track.work.send([track.outcomes[index] for index in range(len(jobs))])

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

    def _submit(self) -> bool:
        """Submit the next job of the queue, unless another run does it or did it; return False if a worker has died."""
        track, index = self._waiting[0]
        job = track.jobs[index]
        if not self._shared.begin_job(track.method, job):
            self._elsewhere.append(self._waiting.popleft())
            return True
        outcome = self._stored_outcome(job)
        if outcome is not None:
            self._waiting.popleft()
            self._shared.end_job(job)
            self._add_outcome(track, index, outcome, from_store=True)
            self._continue(track)
            return True
        try:
            future = self.executor.submit(self._task(track.problem, job))
        except BrokenProcessPool as error:
            self._shared.end_job(job)
            if not self._running:
                self._handle_failure(track, job, error)
                self.executor.restart()
            return False
        self._waiting.popleft()
        self._running[future] = (track, index)
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
            track, index = self._running.pop(future)
            job = track.jobs[index]
            error = future.exception()
            if error is None:
                self._store(track, index, future.result())
                continue
            self._shared.end_job(job)
            pool_broke |= isinstance(error, BrokenProcessPool)
            self._handle_failure(track, job, error)
            self._waiting.appendleft((track, index))
        if pool_broke:
            for track, index in self._running.values():
                self._shared.end_job(track.jobs[index])
                self._waiting.appendleft((track, index))
            self._running.clear()
            self.executor.restart()

    def _add_outcome(self, track: _Track, index: int, outcome: Outcome, *, from_store: bool) -> None:
        """Add the outcome of a job to its track, list a run under the experiment, and inform the observer."""
        track.outcomes[index] = outcome
        if isinstance(outcome, RunRecord) and self.experiment is not None:
            self.store.enlist(self.experiment, track.method, outcome.run, outcome.fingerprint, outcome.search)
        self.observer.job_done(track.method, track.jobs[index], outcome, from_store=from_store)

    def _store(self, track: _Track, index: int, done: Done) -> None:
        """Store a new outcome. If it is the last one that the protocol waits for, continue the protocol."""
        job = track.jobs[index]
        self._put(job, done)
        self._shared.end_job(job)
        self._add_outcome(track, index, done.result if isinstance(done, Trained) else done, from_store=False)
        self._continue(track)

    def _put(self, job: Job, done: Done) -> None:
        if not isinstance(done, Trained):
            self.store.put_run(done)
            return
        assert isinstance(job, TrainJob)
        # The curve first: once the result is stored, the training is never repeated, and a curve would be lost.
        if done.test_curve is not None:
            self.store.put_test_curve(done.test_curve)
        self.store.put_fold(job.spec, done.result)

    def _keep_finished(self, done: set[Future[Done]]) -> None:
        """Store what was finished when the run was stopped."""
        for future in done:
            if future.exception() is None:
                track, index = self._running[future]
                self._put(track.jobs[index], future.result())

    def _continue(self, track: _Track) -> None:
        """Continue a method's protocol if it has all outcomes that it waits for."""
        if len(track.outcomes) < len(track.jobs):
            return
        self._shared.check_searches(track.method, track.studies)
        try:
            self._take_jobs(track, track.work.send([track.outcomes[index] for index in range(len(track.jobs))]))
        except StopIteration as stop:
            self._finish(track, stop.value)

    def _handle_failure(self, track: _Track, job: Job, error: BaseException) -> None:
        """Store a failure. Return if the job may be tried again; raise WorkFailedError if not."""
        name = job.spec.fingerprint if isinstance(job, TrainJob) else job.fingerprint
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
