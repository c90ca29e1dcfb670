"""The interface of executors, which carry out tasks in this process, in local processes or on a cluster."""

import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Protocol

from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick


class WorkerDiedError(Exception):
    """A process, a job or a node ended while it ran a task. The other tasks continue."""


def sendable(error: Exception) -> Exception:
    """Return an error as another process can read it: one that cannot be unpickled becomes its name and message."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return WorkerDiedError(f"{type(error).__name__}: {error}".splitlines()[0])
    return error


class Executor(Protocol):
    """Carries out tasks and gives a future for each.

    A task that runs out of a GPU's memory beside others begins again with fewer beside it, and its future waits for
    that. Only one that was alone fails, with InputError.

    Attributes:
        device: Device that the tasks run on: cpu, cuda or cuda:N.
        workers: How many tasks run at the same time.
        capacity: How many tasks should be submitted and unfinished at the same time, so that no worker is idle.
    """

    device: str
    workers: int
    capacity: int

    def submit(self, task: Task) -> "Future[Done]":
        """Start a task or queue it.

        Raises:
            BrokenProcessPool: A worker has died; call `restart` before the next task is submitted.
        """

    def end(self, future: "Future[Done]", reason: str) -> None:
        """End a task that hangs. The other tasks continue.

        Its future fails with WorkerDiedError and this reason, unless the task has finished in the meantime. A task that
        no worker has begun is left alone.
        """

    def restart(self) -> None:
        """Make the executor usable again after a worker died. Unfinished tasks must be submitted again."""

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call.

        Some executors also start waiting tasks here. So call it at least whenever a task ends.
        """

    def close(self) -> None:
        """End all workers and the trainings that they run."""


def in_order(executor: Executor, futures: "Sequence[Future[Done]]") -> "Iterator[Future[Done]]":
    """Wait for tasks and yield their futures in the given order, each as soon as it and those before it are done."""
    for future in futures:
        while not future.done():
            wait([other for other in futures if not other.done()], timeout=0.5, return_when=FIRST_COMPLETED)
            executor.ticks()
        yield future
