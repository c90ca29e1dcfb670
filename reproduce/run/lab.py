"""The lab of a run: looks up what the store has, makes what is missing on the executor, and stores every outcome.

A protocol is a function that asks a lab. Where an outcome is missing, the lab raises `Missing`. The loop here makes it
and asks the protocol again, which finds everything up to there. So all searches go on side by side in one thread, and
no worker is idle while one of them waits for the last fold of a trial.
"""

import errno
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Protocol

from protocols.datasets.splits import SplitError
from protocols.evaluation.evaluate_run import test_data
from protocols.jobs import EvaluateJob, Job, Lab, Missing, Outcome, TrainJob
from protocols.setup import Setup
from protocols.training.build_method import MethodError, RefusedError
from protocols.trunks.trunk_entry import TrunkError
from protocols.users_code.sources import SourceError, words_of
from reproduce import interrupts
from reproduce.errors import InputError, WorkFailedError
from reproduce.run.tasks import EvaluateTask, Executor, Task, TaskResult, TrainTask, put_outcome, stored_outcome
from results.records.artifacts import weights_path
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


Key = tuple[str, bool]


@dataclass(eq=False)
class _Work:
    """A job that is not in the store, the searches that wait for it, and how often it has failed."""

    job: Job
    setup: Setup
    number: int
    wanted_by: "list[MethodLab]" = field(default_factory=list)
    failures: int = 0

    @property
    def called(self) -> str:
        """The job's name in messages."""
        job = self.job
        what = f"fold {job.spec.fold}" if isinstance(job, TrainJob) else f"test of {job.run_name}"
        return f"{self.wanted_by[0].search.method}, {what}"


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
        self._works: dict[Key, _Work] = {}
        self._waiting: list[_Work] = []
        self._running: dict[Future[TaskResult], _Work] = {}
        self._errors: dict[Key, RefusedError | WorkFailedError] = {}

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
        left = [MethodLab(self, search) for search in searches]
        failed: dict[str, RefusedError | WorkFailedError] = {}
        ready, rounds = deque(left), 0
        while left:
            if ready:
                one = ready.popleft()
                try:
                    one.search.follow(one)
                    left.remove(one)
                except Missing as missing:
                    self._want(one, missing.jobs)
                except (RefusedError, WorkFailedError) as error:
                    failed.setdefault(one.search.method, error)
                    left.remove(one)
            self._begin_waiting()
            self._collect(0.0 if ready else _LOOK_SECONDS)
            interrupts.stop_if_requested()
            ready.extend(one for one in left if not one.missing and one not in ready)
            if left and (complete := min(one.search.number for one in left)) > rounds:
                rounds = complete
                after_round(rounds)
        return failed

    def found(self, one: "MethodLab", job: Job) -> Outcome | None:
        """Return a job's outcome if the store has it; raise the error that it failed with in this run."""
        if (error := self._errors.get(_key(job))) is not None:
            raise error
        outcome = stored_outcome(self.store, job)
        if outcome is not None:
            self._deliver(one, job, outcome, from_store=True)
        return outcome

    def _want(self, one: "MethodLab", jobs: Sequence[Job]) -> None:
        for job in jobs:
            key = _key(job)
            work = self._works.get(key)
            if work is None:
                work = self._works[key] = _Work(job, one.search.setup, one.search.number)
                self._waiting.append(work)
            if key not in one.missing:
                one.missing[key] = work
                work.wanted_by.append(one)

    def _begin_waiting(self) -> None:
        while self._waiting and len(self._running) < self.executor.workers and not interrupts.requested():
            work = min(self._waiting, key=lambda work: work.number)
            self._waiting.remove(work)
            self._running[self.executor.submit(self._task(work.setup, work.job))] = work

    def _task(self, setup: Setup, job: Job) -> Task:
        artifacts, dataset, split = self.store.artifacts, setup.dataset, setup.split
        if isinstance(job, TrainJob):
            weights = None if job.run is None else weights_path(artifacts, job.spec)
            observed_on = test_data(dataset, split) if self.test_curves and job.run is not None else None
            return TrainTask(job, setup.training_data(job.spec), weights, observed_on)
        paths = tuple(weights_path(artifacts, spec) for spec in job.specs)
        return EvaluateTask(job, test_data(dataset, split), paths)

    def _collect(self, seconds: float) -> None:
        done, _ = wait(self._running, seconds, FIRST_COMPLETED)
        # Successes first: a failure may end the run, and finished work must be stored before that.
        for future in sorted(done, key=lambda future: future.exception() is not None):
            work, error = self._running.pop(future), future.exception()
            if error is None:
                self._finish(work, future.result())
            elif not interrupts.requested():
                self._handle(work, error)

    def _finish(self, work: _Work, result: TaskResult) -> None:
        outcome, key = put_outcome(self.store, work.called, work.job, result), _key(work.job)
        for number, one in enumerate(work.wanted_by):
            self._deliver(one, work.job, outcome, from_store=number > 0)
            del one.missing[key]
        del self._works[key]

    def _deliver(self, one: "MethodLab", job: Job, outcome: Outcome, *, from_store: bool) -> None:
        if not one.remember(job, outcome):
            return
        if isinstance(outcome, RunRecord) and self.experiment is not None:
            assert isinstance(job, EvaluateJob)
            self.store.enlist(self.experiment, one.search.method, outcome, job.study)
        for observer in self.observers:
            observer.job_done(one.search.method, job, outcome, from_store=from_store)

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
                self._waiting.insert(0, work)
            else:
                often = f"failed {ATTEMPTS} times, last with {reason}"
                remedy = "everything finished is kept, run the same command to try again"
                self._fail(work, WorkFailedError(f"{work.called}: {often}; {remedy}"))

    def _fail(self, work: _Work, error: RefusedError | WorkFailedError) -> None:
        """Keep why a job failed, and drop the jobs that have not begun and that only those wait for who need it."""
        key = _key(work.job)
        self._errors[key] = error
        del self._works[key]
        for one in work.wanted_by:
            del one.missing[key]
            for other_key, other in [*one.missing.items()]:
                if other in self._waiting:
                    del one.missing[other_key]
                    other.wanted_by.remove(one)
                    if not other.wanted_by:
                        self._waiting.remove(other)
                        del self._works[other_key]


class MethodLab:
    """The lab as one search sees it.

    Attributes:
        search: The search.
        missing: What it waits for.
    """

    def __init__(self, shared: SharedLab, search: MethodSearch) -> None:
        self.search, self.missing = search, dict[Key, _Work]()
        self._shared, self._seen, self._known = shared, set[Key](), dict[Key, Outcome]()

    def train(self, jobs: Sequence[TrainJob]) -> list[FoldResult]:
        """As `Lab.train`."""
        return [outcome for outcome in self._made(jobs) if isinstance(outcome, FoldResult)]

    def test(self, jobs: Sequence[EvaluateJob]) -> list[RunRecord]:
        """As `Lab.test`."""
        return [outcome for outcome in self._made(jobs) if isinstance(outcome, RunRecord)]

    def remember(self, job: Job, outcome: Outcome) -> bool:
        """Keep an outcome for the next time that the protocol asks; return whether it is the first time.

        Trainings of trials are left to the store: there are many, and a trial that has a score asks for none again.
        """
        key = _key(job)
        if isinstance(job, EvaluateJob) or job.run is not None or job.chooses_epoch:
            self._known[key] = outcome
        is_first = key not in self._seen
        self._seen.add(key)
        return is_first

    def _made(self, jobs: Sequence[Job]) -> list[Outcome]:
        outcomes = {_key(job): self._known.get(_key(job)) or self._shared.found(self, job) for job in jobs}
        if missing := [job for job in jobs if outcomes[_key(job)] is None]:
            raise Missing(missing)
        return [outcome for job in jobs if (outcome := outcomes[_key(job)]) is not None]


def _key(job: Job) -> Key:
    """A training that makes no checkpoint is other work than one that does."""
    return job.fingerprint, isinstance(job, TrainJob) and job.run is None
