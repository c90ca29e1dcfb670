"""The interface of executors, which run tasks in this process, in local processes or on a Ray cluster."""

from concurrent.futures import Future
from typing import Protocol

from reproduce.execution.tasks import Task, TaskResult
from reproduce.monitoring.observer import Tick


class WorkerDiedError(Exception):
    """A process or a node ended while it ran a task. The other tasks continue."""


class Executor(Protocol):
    """Runs tasks and gives a future for each. `submit` is called in the main thread.

    A task that does not fit into a GPU's memory fails with InputError.

    Attributes:
        device: Device that the tasks run on: cpu, cuda or cuda:N.
        workers: How many tasks run at the same time.
    """

    device: str
    workers: int

    def submit(self, task: Task) -> "Future[TaskResult]":
        """Start a task or queue it."""

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call."""

    def close(self) -> None:
        """End all workers and the trainings that they run."""
