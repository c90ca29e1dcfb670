"""Runs the protocols of all methods: looks up each job in the store, executes missing jobs, stores every outcome.

Methods run at the same time: while one method waits for the last fold of a trial, the workers train for another. Work
that another run on the same store is doing is put off.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from protocols.evaluation.test_data import test_data
from protocols.jobs import EvaluateJob, Job, Outcome, Refusal, TrainJob, Work
from protocols.problem import Problem
from protocols.training.build_method import RefusedError
from reproduce import interrupts
from reproduce.execution.executor import Executor
from reproduce.execution.failed_jobs import FailedJobs, HangWatch, described
from reproduce.execution.job_outcomes import JobOutcomes
from reproduce.execution.shared_work import SharedWork
from reproduce.execution.tasks import Done, EvaluateTask, Task, TrainTask, figure_inputs
from reproduce.execution.track import MethodTrack
from reproduce.monitoring.observer import Observer, Tick
from results.records.artifacts import weights_path
from results.records.records import RunRecord
from results.spec.experiment_spec import RecordingSettings
from results.store.store import Store

_LOOK_AGAIN_SECONDS = 1.0  # How often the work of other runs is looked at again.


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
        say: Prints a line about work that another run does, or about a training that hangs or is refused.
        hang_watch: Finds trainings that hang. They are ended and tried again. None ends none.
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
        hang_watch: HangWatch | None = None,
    ) -> None:
        self.experiment, self.test_curves, self.recordings = experiment, test_curves, recordings
        self.store, self.executor, self.observer = store, executor, observer
        self.problem, self.row_problems, self.say, self.hang_watch = problem, row_problems or {}, say, hang_watch
        self._outcomes, self._failed = JobOutcomes(store), FailedJobs(store)
        self._tracks: list[MethodTrack] = []
        self._not_started: list[MethodTrack] = []
        self._waiting: deque[tuple[MethodTrack, Job]] = deque()
        self._elsewhere: list[tuple[MethodTrack, Job]] = []
        self._running: dict[Future[Done], tuple[MethodTrack, Job]] = {}
        self._next_look = 0.0
        self._made_ahead: set[str] = set()
        self._finished: dict[str, list[RunRecord]] = {}
        # By method, why its own code takes no setting, or not the one that was found.
        self.refused: dict[str, str] = {}

    def run(
        self, protocols: Mapping[str, Work[list[RunRecord]]], studies: Mapping[str, tuple[str, ...]] | None = None
    ) -> dict[str, list[RunRecord]]:
        """Run the protocols to their end, and return the runs of every method; none for those in `refused`.

        A method starts when no other run works on its `studies`, which its search writes to.

        Raises:
            WorkFailedError: A job cannot be done; everything finished before is in the store.
            KeyboardInterrupt: Somebody asked this process to stop.
        """
        names, self._next_look = studies or {}, 0.0
        self._tracks = [
            MethodTrack(method, self.row_problems.get(method, self.problem), work, names.get(method, ()))
            for method, work in protocols.items()
        ]
        self._not_started = list(self._tracks)
        with self.store.leases() as leases:
            self._shared = SharedWork(leases, self.say)
            while self._not_started or self._elsewhere or self._waiting or self._running:
                self._look_at_other_runs()
                self._submit_waiting()
                self._use_idle_workers()
                done = self._wait()
                if interrupts.requested():
                    self._keep_finished(done)
                    raise interrupts.StopRequest
                ticks = self.executor.ticks()
                self.observer.ticks(ticks)
                self._end_hanging(ticks)
                self._collect(done)
        return self._finished

    def _look_at_other_runs(self) -> None:
        if time.monotonic() < self._next_look:
            return
        for track in list(self._not_started):
            if not interrupts.requested() and self._shared.begin_searches(track.method, track.studies):
                self._not_started.remove(track)
                self._advance(track, partial(next, track.work))
        self._waiting.extend(self._elsewhere)
        self._elsewhere.clear()
        self._next_look = time.monotonic() + _LOOK_AGAIN_SECONDS

    def _submit_waiting(self) -> None:
        while self._waiting and len(self._running) < self.executor.capacity and not interrupts.requested():
            if not self._submit_next():
                return

    def _wait(self) -> set[Future[Done]]:
        if self._running:
            return wait(self._running, timeout=0.5, return_when=FIRST_COMPLETED)[0]
        if not self._waiting and (self._not_started or self._elsewhere):
            time.sleep(0.1)
        return set()

    def _advance(self, track: MethodTrack, next_jobs: Callable[[], list[Job]]) -> None:
        try:
            self._take_jobs(track, next_jobs())
        except StopIteration as stop:
            self._finish(track, stop.value)
        except RefusedError as error:
            self.refused[track.method] = str(error)
            self._finish(track, [])

    def _finish(self, track: MethodTrack, records: list[RunRecord]) -> None:
        self._finished[track.method] = records
        self._shared.end_searches(track.studies)

    def _take_jobs(self, track: MethodTrack, jobs: list[Job]) -> None:
        """Queue a protocol's jobs that are not in the store. If the store has all outcomes, continue the protocol."""
        while True:
            ahead = [job for job in jobs if isinstance(job, TrainJob) and job.if_idle]
            track.jobs, track.outcomes = [job for job in jobs if job not in ahead], {}
            self._replace_ahead(track, ahead)
            under_way = self._under_way(track)
            for index, job in enumerate(track.jobs):
                outcome = self._failed.refusal(job) or self._outcomes.stored(job)
                if outcome is not None:
                    self._add_outcome(track, index, outcome, from_store=job.fingerprint not in self._made_ahead)
                elif job.fingerprint not in under_way:
                    self._waiting.append((track, job))
            if not track.has_all_outcomes:
                return
            jobs = track.next_jobs()

    def _under_way(self, track: MethodTrack) -> set[str]:
        return {job.fingerprint for running, job in self._running.values() if running is track}

    def _replace_ahead(self, track: MethodTrack, ahead: list[TrainJob]) -> None:
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
            if self._waiting or len(self._running) >= self.executor.workers or interrupts.requested():
                return
            if job.fingerprint in under_way or self._failed.too_often(job) or self._outcomes.stored(job) is not None:
                continue
            if self._begin(track, job) and not self._submit(track, job):
                return

    def _begin(self, track: MethodTrack, job: Job) -> bool:
        """Take a job; return False if another run does it or has done it since it was looked up."""
        if not self._shared.begin_job(track.method, job):
            return False
        if self._outcomes.stored(job) is None:
            return True
        self._shared.end_job(job)
        return False

    def _submit_next(self) -> bool:
        """Submit the next job, or use its stored outcome; return False if a worker has died, as `_submit` does."""
        track, job = self._waiting.popleft()
        if not track.awaited(job.fingerprint):  # The track had this training twice, and has its outcome now.
            return True
        if self._begin(track, job):
            if not self._submit(track, job):
                self._waiting.appendleft((track, job))
                return False
            return True
        outcome = self._outcomes.stored(job)
        if outcome is None:
            self._elsewhere.append((track, job))
        else:
            self._add_awaited(track, job, outcome, from_store=job.fingerprint not in self._made_ahead)
        return True

    def _submit(self, track: MethodTrack, job: Job) -> bool:
        try:
            future = self.executor.submit(self._task(track.problem, job))
        except BrokenProcessPool as error:
            self._shared.end_job(job)
            if not self._running:
                self._failed.add(track.method, job, error)
                self.executor.restart()
            return False
        self._running[future] = (track, job)
        return True

    def _task(self, problem: Problem, job: Job) -> Task:
        artifacts, dataset, split = self.store.artifacts, problem.dataset, problem.split
        if isinstance(job, TrainJob):
            weights = None if job.run is None else weights_path(artifacts, job.spec)
            observed_on = test_data(dataset, split) if self.test_curves and job.run is not None else None
            recordings = None if job.run is None else self.recordings
            return TrainTask(job, problem.training_data(job.spec), weights, observed_on, recordings)
        paths = tuple(weights_path(artifacts, spec) for spec in job.specs)
        return EvaluateTask(job, test_data(dataset, split), paths, figure_inputs(problem, job, artifacts))

    def _end_hanging(self, ticks: list[Tick]) -> None:
        """End the trainings that hang. Their futures fail, and they are tried again like others that failed."""
        if self.hang_watch is None:
            return
        for future, reason in self.hang_watch.look(self._running, ticks).items():
            track, job = self._running[future]
            if not future.done():
                self.say(f"{track.method}, {described(job)}: {reason}; it is ended")
                self.executor.end(future, reason)

    def _collect(self, done: set[Future[Done]]) -> None:
        pool_broke = False
        # Successes first: a failure may end the run, and finished work must be stored before that.
        for future in sorted(done, key=lambda future: future.exception() is not None):
            track, job = self._running.pop(future)
            error = future.exception()
            if error is None:
                self._store(track, job, future.result())
                continue
            self._shared.end_job(job)
            pool_broke |= isinstance(error, BrokenProcessPool)
            if isinstance(error, RefusedError):
                self._refuse(track, job, error)
            elif track.awaited(job.fingerprint):
                self._failed.add(track.method, job, error)
                self._waiting.appendleft((track, job))
            else:
                self._failed.add_ahead(job, error)
        if pool_broke:
            for track, job in self._running.values():
                self._shared.end_job(job)
                if track.awaited(job.fingerprint):
                    self._waiting.appendleft((track, job))
            self._running.clear()
            self.executor.restart()

    def _refuse(self, track: MethodTrack, job: Job, error: RefusedError) -> None:
        """Give the protocol the refusal of a job, also for the jobs of the same list that have not begun."""
        refusal = self._failed.refuse(track.method, job, error)
        if track.awaited(job.fingerprint):
            if not any(isinstance(outcome, Refusal) for outcome in track.outcomes.values()):
                self.say(f"{track.method}, {described(job)}: refused: {refusal.reason}")
            under_way = self._under_way(track)
            for index, each in enumerate(track.jobs):
                if index not in track.outcomes and each.fingerprint not in under_way:
                    self._add_outcome(track, index, refusal, from_store=False)
            self._continue(track)

    def _store(self, track: MethodTrack, job: Job, done: Done) -> None:
        outcome = self._outcomes.put(track.method, job, done)
        self._shared.end_job(job)
        if track.awaited(job.fingerprint):
            self._add_awaited(track, job, outcome, from_store=False)
        else:
            self._made_ahead.add(job.fingerprint)

    def _keep_finished(self, done: set[Future[Done]]) -> None:
        for future in done:
            if future.exception() is None:
                track, job = self._running[future]
                self._outcomes.put(track.method, job, future.result())

    def _add_awaited(self, track: MethodTrack, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        for index in track.awaited(job.fingerprint):
            self._add_outcome(track, index, outcome, from_store=from_store)
        self._continue(track)

    def _continue(self, track: MethodTrack) -> None:
        if track.has_all_outcomes:
            self._shared.check_searches(track.method, track.studies)
            self._advance(track, track.next_jobs)

    def _add_outcome(self, track: MethodTrack, index: int, outcome: Outcome, *, from_store: bool) -> None:
        track.outcomes[index] = outcome
        if isinstance(outcome, Refusal):
            self.observer.spared(track.method, [track.jobs[index].fingerprint])
            return
        if isinstance(outcome, RunRecord) and self.experiment is not None:
            job = track.jobs[index]
            assert isinstance(job, EvaluateJob)
            self.store.enlist(self.experiment, track.method, outcome, job.study)
        self.observer.job_done(track.method, track.jobs[index], outcome, from_store=from_store)
