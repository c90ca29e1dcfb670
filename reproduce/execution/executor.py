"""What carries out tasks: this process, local processes or a cluster."""

from concurrent.futures import Future
from typing import Protocol

from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick


class Executor(Protocol):
    """Takes tasks and gives futures.

    Attributes:
        device: What the tasks run on: cpu, cuda or cuda:N.
        workers: How many tasks run side by side.
        capacity: How many tasks to have under way at once, so that no worker waits for the next.
    """

    device: str
    workers: int
    capacity: int

    def submit(self, task: Task) -> "Future[Done]":
        """Starts a task or puts it in line."""

    def restart(self) -> None:
        """Makes the executor usable again after a worker died; tasks under way must be submitted again."""

    def ticks(self) -> list[Tick]:
        """Progress reported since the last call."""

    def close(self) -> None:
        """Ends all workers, trainings under way included."""
