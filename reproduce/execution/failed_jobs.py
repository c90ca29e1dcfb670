"""Decides whether a job that failed is tried again, or ends the run with one line."""

import errno
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from protocols.jobs import Job, Refusal, TrainJob
from protocols.splits import SplitError
from protocols.training.build_method import MethodError, RefusedError
from protocols.trunks.weights import TrunkError
from protocols.users_files.sources import SourceError
from reproduce.errors import InputError, WorkFailedError
from reproduce.execution.tasks import Done
from reproduce.execution.track import MethodTrack
from reproduce.forecast.plan_trainings import Length, lengths
from reproduce.forecast.rates import work_of
from reproduce.monitoring.observer import Tick
from reproduce.monitoring.time_left import in_words
from results.records.frames import Timing
from results.store.store import Store
from results.whole_files import ChangedFileError

LEAST_SECONDS = 60.0
"""No training is ended after a shorter silence. A training of some seconds can wait that long for a disk."""

_LONGEST_GAP = 10.0
"""Seconds between two looks that count at most as silence. A run that was stopped (Ctrl-Z) has stopped workers too."""


@dataclass
class _Signs:
    """What a running training has reported.

    Attributes:
        longest: Length of the training if it runs for all epochs.
        begun: The last look before its beginning was reported, by the clock.
        last: When it last reported something, in seconds that were watched.
    """

    longest: Length
    begun: float
    last: float


class HangWatch:
    """Finds the running trainings that hang.

    A training hangs if it has reported nothing for more than `factor` times the forecast of a whole training, since a
    worker began it or since its last validation. The forecast is for the longest possible training (all epochs), at
    the slowest rate of the method's trainings in this run; without any, at the slowest of all methods. Stored trainings
    do not count, since another machine may have made them. Nothing hangs until one training has trained up to a
    validation, nor before `LEAST_SECONDS`.
    """

    def __init__(self, factor: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.factor, self._clock = factor, clock
        self._looked, self._watched = clock(), 0.0
        self._signs: dict[Future[Done], _Signs] = {}
        self._seconds_per_image: dict[str, dict[str, float]] = defaultdict(dict)

    def look(
        self, running: Mapping["Future[Done]", tuple[MethodTrack, Job]], ticks: list[Tick]
    ) -> "dict[Future[Done], str]":
        """Note the progress since the last look, and return the trainings that hang now, each with the reason.

        A training is returned again only after another time of silence. `running` has all tasks that are not finished.
        """
        before, self._looked = self._looked, self._clock()
        self._watched += min(self._looked - before, _LONGEST_GAP)
        self._signs = {future: signs for future, signs in self._signs.items() if future in running}
        attempts = {job.fingerprint: future for future, (_, job) in running.items()}
        for tick in ticks:
            if tick.fingerprint in attempts:
                future = attempts[tick.fingerprint]
                track, job = running[future]
                assert isinstance(job, TrainJob)
                self._note(tick, future, track, job, before)
        hanging = {}
        for future, signs in self._signs.items():
            forecast, silence = self._forecast(running[future][0].method, signs), self._watched - signs.last
            if forecast is not None and silence > max(LEAST_SECONDS, self.factor * forecast):
                signs.last = self._watched
                hanging[future] = (
                    f"the training hung: nothing reported for {in_words(silence)}, more than {self.factor:g} times the "
                    f"forecast of the longest training, {in_words(forecast)} (--training-timeout)"
                )
        return hanging

    def _forecast(self, method: str, signs: _Signs) -> float | None:
        """Return the seconds of the longest training; None as long as no rate is known."""
        by_method = self._seconds_per_image
        known = [by_method[method]] if method in by_method else by_method.values()
        seconds = [each for trainings in known for each in trainings.values()]
        return signs.longest.work * max(seconds) if seconds else None

    def _note(self, tick: Tick, future: "Future[Done]", track: MethodTrack, job: TrainJob, before: float) -> None:
        if future not in self._signs:
            _, longest = lengths(track.problem, [job.spec])
            self._signs[future] = _Signs(longest, before, self._watched)
        signs = self._signs[future]
        signs.last = self._watched
        seconds = self._looked - signs.begun
        if tick.iterations and seconds > 0:
            work = work_of(Timing(job.spec, tick.iterations, seconds), track.problem)
            self._seconds_per_image[track.method][job.fingerprint] = seconds / work


ATTEMPTS = 3
"""How often a job is tried if it fails for reasons outside the method."""


def described(job: Job) -> str:
    """Name a job in a message that begins with the method's key."""
    return f"fold {job.spec.fold}" if isinstance(job, TrainJob) else f"test of {job.run_name}"


class FailedJobs:
    """Counts the failures of jobs in this run, stores them, and remembers which jobs their methods refuse."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._attempts: dict[str, int] = {}
        self._refusals: dict[str, Refusal] = {}

    def refuse(self, method: str, job: Job, error: RefusedError) -> Refusal:
        """Store that a method refuses a job. It is not tried again, since it would be refused again."""
        self._store.put_failure(job.fingerprint, f"{method}, {described(job)}: {error}")
        self._refusals[job.fingerprint] = Refusal(str(error))
        return self._refusals[job.fingerprint]

    def refusal(self, job: Job) -> Refusal | None:
        """Return the refusal of a job in this run; None if it was not refused."""
        return self._refusals.get(job.fingerprint)

    def add(self, method: str, job: Job, error: BaseException) -> None:
        """Store a failure. Return if the job may be tried again; raise WorkFailedError if not."""
        description, reason = described(job), _reason(error)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise WorkFailedError(
                f"{method}, {description}: the disk is full; free some space and run the same command again, "
                "everything finished is kept"
            ) from error
        if isinstance(error, MethodError | SplitError | SourceError | TrunkError | ChangedFileError | InputError):
            raise WorkFailedError(f"{method}, {description}: {error}") from error
        self.add_ahead(job, error)
        if self.too_often(job):
            raise WorkFailedError(
                f"{method}, {description}: failed {ATTEMPTS} times, last with {reason}; everything finished is "
                "kept, run the same command to try again"
            ) from error

    def add_ahead(self, job: Job, error: BaseException) -> None:
        """Store the failure of a job that no protocol waits for. It does not end the run, and has the same limit."""
        self._store.put_failure(job.fingerprint, _reason(error))
        self._attempts[job.fingerprint] = self._attempts.get(job.fingerprint, 0) + 1

    def too_often(self, job: Job) -> bool:
        """Tell whether a job has failed so often that it must not be tried ahead of time."""
        return job.fingerprint in self._refusals or self._attempts.get(job.fingerprint, 0) >= ATTEMPTS


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
