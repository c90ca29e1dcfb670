"""Decides whether a job that failed is tried again, or ends the run with one line."""

import errno

from protocols.jobs import Job, TrainJob
from protocols.source_files import SourceError
from protocols.splits import SplitError
from protocols.training.build_method import MethodError
from protocols.verified_files import ChangedFileError
from reproduce.errors import InputError, WorkFailedError
from results.store import Store

ATTEMPTS = 3
"""How often a job is tried if it fails for reasons outside the method."""


def described(job: Job) -> str:
    """Name a job in a message that begins with the method's key."""
    return f"fold {job.spec.fold}" if isinstance(job, TrainJob) else f"test of {job.run_name}"


class FailedJobs:
    """Counts the failures of jobs in this run, and stores them.

    Args:
        store: Where the failures are stored.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._attempts: dict[str, int] = {}

    def add(self, method: str, job: Job, error: BaseException) -> None:
        """Store a failure. Return if the job may be tried again.

        Args:
            method: Key of the method.
            job: The training or test.
            error: Why it failed.

        Raises:
            WorkFailedError: The job must not be tried again, or has failed too often.
        """
        description, reason = described(job), _reason(error)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise WorkFailedError(
                f"{method}, {description}: the disk is full; free some space and run the same command again, "
                "everything finished is kept"
            ) from error
        if isinstance(error, MethodError | SplitError | SourceError | ChangedFileError | InputError):
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
        return self._attempts.get(job.fingerprint, 0) >= ATTEMPTS


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
