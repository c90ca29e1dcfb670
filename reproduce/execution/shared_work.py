"""Divides the work between runs that use the same store at the same time: nothing is searched or trained twice.

A search has one owner, since each trial depends on the ones before. A training or a test has one owner while it is
under way. What another run works on is put off, and its results are then taken from the store.
"""

from collections.abc import Callable

from protocols.jobs import Job, TrainJob
from reproduce.errors import WorkFailedError
from results.store.leases import LEASE_SECONDS, Leases, ProcessIdentity


class SharedWork:
    """The searches and jobs that this run has taken."""

    def __init__(self, leases: Leases, say: Callable[[str], None]) -> None:
        self._leases, self._say = leases, say
        self._said: set[tuple[str, str]] = set()
        self._jobs: set[str] = set()

    def begin_searches(self, method: str, studies: tuple[str, ...]) -> bool:
        """Take the searches of a method; return False if another run has one of them."""
        if not studies:
            return True
        holder = self._leases.take(*map(study_lease, studies))
        if holder is not None:
            self._say_once(method, "searches its hyperparameters", holder)
        return holder is None

    def check_searches(self, method: str, studies: tuple[str, ...]) -> None:
        """Raise WorkFailedError if this run has lost the searches of a method."""
        if studies and not self._leases.has(*map(study_lease, studies)):
            raise WorkFailedError(
                f"{method}: another run has taken over its search, because this one gave no sign of life for "
                f"{LEASE_SECONDS:.0f} s; everything finished is kept, run the same command to continue"
            )

    def end_searches(self, studies: tuple[str, ...]) -> None:
        """Give the searches of a method back."""
        if studies:
            self._leases.give_back(*map(study_lease, studies))

    def begin_job(self, method: str, job: Job) -> bool:
        """Take a training or a test; return False if it is under way in another run or for another method."""
        name = _of_job(job)
        if name in self._jobs:
            return False
        holder = self._leases.take(name)
        if holder is not None:
            self._say_once(method, "makes some of its trainings", holder)
            return False
        self._jobs.add(name)
        return True

    def end_job(self, job: Job) -> None:
        """Give a job back, after its outcome was stored or because it must be tried again."""
        self._jobs.discard(_of_job(job))
        self._leases.give_back(_of_job(job))

    def _say_once(self, method: str, doing: str, holder: ProcessIdentity) -> None:
        if (method, doing) not in self._said:
            self._said.add((method, doing))
            self._say(
                f"{method}: another run (process {holder.pid} on {holder.host}) {doing}; this run does other work and "
                f"then waits. It takes over if that process ends, or on another machine is silent for "
                f"{LEASE_SECONDS:.0f} s"
            )


def study_lease(name: str) -> str:
    """Return the name of the lease of a study."""
    return f"study {name}"


def _of_job(job: Job) -> str:
    return f"training {job.spec.fingerprint}" if isinstance(job, TrainJob) else f"test {job.fingerprint}"
