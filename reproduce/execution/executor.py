"""The interface of executors, which carry out tasks in this process, in local processes or on a cluster."""

from concurrent.futures import Future
from typing import Protocol

from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick


class WorkerDiedError(Exception):
    """A process, a job or a node ended while it ran a task. The other tasks continue."""


class Executor(Protocol):
    """Carries out tasks and gives a future for each.

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

        Args:
            task: A training or a test evaluation.

        Returns:
            The future of the task's outcome.

        Raises:
            BrokenProcessPool: A worker has died; call `restart` before the next task is submitted.
        """

    def restart(self) -> None:
        """Make the executor usable again after a worker died. Unfinished tasks must be submitted again."""

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call."""

    def close(self) -> None:
        """End all workers and the trainings that they run."""
