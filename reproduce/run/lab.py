"""The lab of a run: looks up what the store has, makes what is missing on the executor, and stores every outcome.

Each search of each method is a thread that follows its protocol. They all ask one lab, so that no worker is idle while
one of them waits for the last fold of a trial. The main thread gives the tasks to the executor and stores what comes.

Searches wait for the futures of their works. So a work leaves `_works` only when its future is done, whatever fails.
"""

import errno
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from protocols.datasets.splits import SplitError
from protocols.evaluation.evaluate_run import test_data
from protocols.jobs import EvaluateJob, Job, Lab, Outcome, TrainJob
from protocols.setup import Setup
from protocols.training.build_method import MethodError, RefusedError
from protocols.trunks.trunk_entry import TrunkError
from protocols.users_code.sources import SourceError, words_of
from reproduce import interrupts
from reproduce.errors import InputError, WorkFailedError
from reproduce.run.tasks import EvaluateTask, Executor, Task, TaskResult, TrainTask, put_outcome, stored_outcome
from results.records.artifacts import figure_data_path, weights_path
from results.records.records import FoldResult, RunRecord
from results.store.store import Store

ATTEMPTS = 3
"""How often a job is tried if it fails for reasons outside the method, such as a worker that dies."""

_LOOK_SECONDS = 0.5
"""How often a stop request is looked for while nothing ends."""


class Observer(Protocol):
    """Gets the outcomes of jobs from the lab, one call at a time."""

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Handle the outcome of a job of a method; `from_store` if it was in the store before this run."""


@dataclass(frozen=True)
class MethodSearch:
    """One search of a method.

    Attributes:
        method: The method's key.
        setup: Its setup.
        follow: Follows the protocol in a lab.
        number: Number of the search. Work of lower numbers comes first, so that the first answers come early.
    """

    method: str
    setup: Setup
    follow: Callable[[Lab], object]
    number: int = 0


@dataclass(eq=False)
class _Work:
    """A job that is not in the store, the calls that wait for it with their methods, and how often it has failed."""

    job: Job
    setup: Setup
    search: int
    calls: list[tuple[str, int]] = field(default_factory=list)
    outcome: "Future[Outcome]" = field(default_factory=Future)
    failures: int = 0

    @property
    def called(self) -> str:
        """The job's name in messages."""
        job = self.job
        what = f"fold {job.spec.fold}" if isinstance(job, TrainJob) else f"test of {job.run_name}"
        return f"{self.calls[0][0]}, {what}"


class SharedLab:
    """The store and the executor that all searches of a run share.

    Args:
        store: Where outcomes are looked up and stored.
        executor: Runs the tasks whose outcomes are not in the store.
        observers: Get every outcome, one at a time.
        experiment: Fingerprint of the experiment. Finished runs are listed under it at once, so that an unfinished
            experiment has a table too. None lists no runs.
        test_curves: Whether test scores are recorded during the trainings of the reproductions.
        say: Prints a line about a job that its method refuses.
    """

    def __init__(
        self,
        store: Store,
        executor: Executor,
        observers: Sequence[Observer] = (),
        experiment: str | None = None,
        *,
        test_curves: bool = False,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.store, self.executor, self.observers, self.experiment = store, executor, observers, experiment
        self.test_curves, self.say = test_curves, say
        self._lock, self._news = threading.RLock(), threading.Event()
        self._works: dict[tuple[str, bool], _Work] = {}
        self._waiting: deque[_Work] = deque()
        self._running: dict[Future[TaskResult], _Work] = {}
        self._calls = count()
        self._ended = False

    def run(
        self, searches: Iterable[MethodSearch], after_round: Callable[[int], None] = lambda rounds: None
    ) -> dict[str, RefusedError | WorkFailedError]:
        """Follow all searches side by side to their end. Call it in the main thread.

        Args:
            searches: The searches of all methods.
            after_round: Called with the number of complete rounds whenever the next search of every method has ended.

        Returns:
            Why methods have no results, by method: their own code refuses the settings, or a job failed too often.

        Raises:
            WorkFailedError: No method can go on; everything finished before is in the store.
            KeyboardInterrupt: Somebody asked this process to stop.
        """
        searches, following = list(searches), dict[Future[object], MethodSearch]()
        rounds = 0
        with ThreadPoolExecutor(max(1, len(searches)), thread_name_prefix="search") as threads:
            try:
                for search in searches:
                    following[threads.submit(search.follow, MethodLab(self, search))] = search
                for future in following:
                    future.add_done_callback(lambda _: self._news.set())
                while not all(future.done() for future in following):
                    self._begin_waiting()
                    self._news.wait(_LOOK_SECONDS)
                    self._news.clear()
                    self._collect()
                    interrupts.stop_if_requested()
                    _failed(following)
                    left = [search.number for future, search in following.items() if not future.done()]
                    if left and (complete := min(left)) > rounds:
                        rounds = complete
                        after_round(rounds)
            finally:
                self._end()
        return _failed(following)

    def ask(self, search: MethodSearch, jobs: Sequence[Job]) -> "list[Future[Outcome]]":
        """Return futures of the jobs' outcomes, which the store may have. Calls that ask for one job share its future.

        If a job fails, those of the call that have not begun, and that no other call waits for, fail with it.
        """
        with self._lock:
            if self._ended or interrupts.requested():
                raise interrupts.StopRequest
            call = search.method, next(self._calls)
            return [self._future(search, call, job) for job in jobs]

    def _future(self, search: MethodSearch, call: tuple[str, int], job: Job) -> "Future[Outcome]":
        if (stored := stored_outcome(self.store, job)) is not None:
            self._deliver(search.method, job, stored, from_store=True)
            future: Future[Outcome] = Future()
            future.set_result(stored)
            return future
        work = self._works.get(_key(job))
        if work is None:
            work = self._works[_key(job)] = _Work(job, search.setup, search.number)
            self._waiting.append(work)
            self._news.set()
        work.calls.append(call)
        return work.outcome

    def _begin_waiting(self) -> None:
        while len(self._running) < self.executor.workers and not interrupts.requested():
            with self._lock:
                if not self._waiting:
                    return
                work = min(self._waiting, key=lambda work: work.search)
                self._waiting.remove(work)
            future = self.executor.submit(self._task(work.setup, work.job))
            self._running[future] = work
            future.add_done_callback(lambda _: self._news.set())

    def _task(self, setup: Setup, job: Job) -> Task:
        artifacts, dataset, split = self.store.artifacts, setup.dataset, setup.split
        if isinstance(job, TrainJob):
            weights = None if job.run is None else weights_path(artifacts, job.spec)
            observed_on = test_data(dataset, split) if self.test_curves and job.run is not None else None
            return TrainTask(job, setup.training_data(job.spec), weights, observed_on)
        paths = tuple(weights_path(artifacts, spec) for spec in job.specs)
        # The figures are those of the first reproduction of each method.
        figures = figure_data_path(artifacts, job.fingerprint) if job.run == job.search == 0 else None
        return EvaluateTask(job, test_data(dataset, split), paths, figures, dataset.class_names)

    def _collect(self) -> None:
        done = [future for future in self._running if future.done()]
        # Successes first: a failure may end the run, and finished work must be stored before that.
        for future in sorted(done, key=lambda future: future.exception() is not None):
            work, error = self._running.pop(future), future.exception()
            with self._lock:
                if error is None:
                    self._finish(work, future.result())
                elif not interrupts.requested():
                    self._handle(work, error)

    def _finish(self, work: _Work, result: TaskResult) -> None:
        outcome = put_outcome(self.store, work.called, work.job, result)
        for number, (method, _) in enumerate(work.calls):
            self._deliver(method, work.job, outcome, from_store=number > 0)
        work.outcome.set_result(outcome)
        del self._works[_key(work.job)]

    def _deliver(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        if isinstance(outcome, RunRecord) and self.experiment is not None:
            assert isinstance(job, EvaluateJob)
            self.store.enlist(self.experiment, method, outcome, job.study)
        for observer in self.observers:
            observer.job_done(method, job, outcome, from_store=from_store)

    def _handle(self, work: _Work, error: BaseException) -> None:
        """Store a failure, and try the job again, fail those who wait for it, or end the run."""
        reason = f"{type(error).__name__}: {words_of(error, 1)}"
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise WorkFailedError(
                f"{work.called}: the disk is full; free some space and run the same command again, everything finished "
                "is kept"
            ) from error
        if isinstance(error, RefusedError):
            self.say(f"{work.called}: refused: {error}")
            self.store.put_failure(work.job.fingerprint, f"{work.called}: {error}")
            self._fail(work, error)
        elif isinstance(error, MethodError | SplitError | SourceError | TrunkError):
            self._fail(work, WorkFailedError(f"{work.called}: {error}"))
        elif isinstance(error, InputError):
            raise WorkFailedError(f"{work.called}: {error}") from error
        else:
            self.store.put_failure(work.job.fingerprint, f"{work.called}: {reason}")
            work.failures += 1
            if work.failures < ATTEMPTS:
                self._waiting.appendleft(work)
            else:
                often = f"failed {ATTEMPTS} times, last with {reason}"
                remedy = "everything finished is kept, run the same command to try again"
                self._fail(work, WorkFailedError(f"{work.called}: {often}; {remedy}"))

    def _fail(self, work: _Work, error: BaseException) -> None:
        """Fail those who wait for a job, and with it the jobs that only they wait for."""
        for other in [other for other in self._waiting if set(other.calls) <= set(work.calls)]:
            self._waiting.remove(other)
            self._forget(other, error)
        self._forget(work, error)

    def _forget(self, work: _Work, error: BaseException) -> None:
        if not work.outcome.done():
            work.outcome.set_exception(error)
        self._works.pop(_key(work.job), None)

    def _end(self) -> None:
        """Let the next call of every search raise, and those under way too."""
        with self._lock:
            self._ended = True
            self._waiting.clear()
            for work in list(self._works.values()):
                self._forget(work, interrupts.StopRequest())


def _failed(following: dict[Future[object], MethodSearch]) -> dict[str, RefusedError | WorkFailedError]:
    """Return why searches that have ended found nothing, by method; raise what no search may end with."""
    failed: dict[str, RefusedError | WorkFailedError] = {}
    for future, search in following.items():
        error = future.exception() if future.done() else None
        if isinstance(error, RefusedError | WorkFailedError):
            failed.setdefault(search.method, error)
        elif error is not None:
            raise error
    return failed


class MethodLab:
    """The lab as one search sees it."""

    def __init__(self, shared: SharedLab, search: MethodSearch) -> None:
        self._shared, self._search = shared, search

    def train(self, jobs: Sequence[TrainJob]) -> list[FoldResult]:
        """As `Lab.train`."""
        return [outcome for outcome in self._made(jobs) if isinstance(outcome, FoldResult)]

    def test(self, jobs: Sequence[EvaluateJob]) -> list[RunRecord]:
        """As `Lab.test`."""
        return [outcome for outcome in self._made(jobs) if isinstance(outcome, RunRecord)]

    def _made(self, jobs: Sequence[Job]) -> list[Outcome]:
        futures = self._shared.ask(self._search, jobs)
        wait(futures)
        return [future.result() for future in futures]


def _key(job: Job) -> tuple[str, bool]:
    """A training that makes no checkpoint is other work than one that does."""
    return job.fingerprint, isinstance(job, TrainJob) and job.run is None
