"""Executors on this machine: one carries out tasks in this process, the other in several local processes."""

import multiprocessing
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from queue import Empty
from typing import Any

from reproduce.execution.carry_out import carry_out
from reproduce.execution.devices import prepare_process, threads_in_environment
from reproduce.execution.executor import Executor
from reproduce.execution.parent_watch import end_with_parent
from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick


class InProcess:
    """Carries out one task after another in this process.

    Args:
        device: cpu, cuda or cuda:N.
        cuda_graphs: Whether trainings record their networks as CUDA graphs.
    """

    workers = 1
    capacity = 1

    def __init__(self, device: str, *, cuda_graphs: bool = False) -> None:
        self.device, self.cuda_graphs = device, cuda_graphs
        self._ticks: list[Tick] = []
        prepare_process(device)

    def submit(self, task: Task) -> "Future[Done]":
        """Carry out the task at once and return a future that is done."""
        future: Future[Done] = Future()
        try:
            future.set_result(carry_out(task, self.device, self._ticks.append, cuda_graphs=self.cuda_graphs))
        except Exception as error:
            future.set_exception(error)
        return future

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call."""
        ticks, self._ticks = self._ticks, []
        return ticks

    def restart(self) -> None:
        """Do nothing: there are no workers to restart."""

    def close(self) -> None:
        """Do nothing: there are no workers to end."""


class LocalProcesses:
    """Carries out tasks in several processes on this machine.

    Args:
        device: cpu, cuda or cuda:N.
        workers: Number of processes.
        cuda_graphs: Whether trainings record their networks as CUDA graphs.
    """

    def __init__(self, device: str, workers: int, *, cuda_graphs: bool = False) -> None:
        self.cuda_graphs = cuda_graphs
        self.device, self.workers, self.capacity = device, workers, 2 * workers
        self._context = multiprocessing.get_context("spawn")
        self._queue: Any = self._context.Queue()
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        with threads_in_environment():
            return ProcessPoolExecutor(
                self.workers,
                mp_context=self._context,
                initializer=_start_worker,
                initargs=(self._queue, self.device, self.cuda_graphs),
            )

    def submit(self, task: Task) -> "Future[Done]":
        """Give the task to the next free process."""
        with threads_in_environment():
            return self._pool.submit(_carry_out_in_worker, task)

    def restart(self) -> None:
        """Start a new pool after a process died. Unfinished tasks must be submitted again."""
        self._stop()
        self._pool = self._start()

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call."""
        ticks = []
        try:
            while True:
                ticks.append(self._queue.get_nowait())
        except Empty:
            return ticks

    def _stop(self) -> None:
        processes = list((self._pool._processes or {}).values())
        manager: threading.Thread | None = self._pool._executor_manager_thread  # type: ignore[assignment]  # wrong stub
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(5)
        # The pool's own thread waits for the same processes. Until it is done, an ended process can still look alive.
        if manager is not None:
            manager.join(5)

    def close(self) -> None:
        """End the processes and the trainings that they run."""
        self._stop()
        self._queue.close()
        self._queue.cancel_join_thread()


_worker: dict[str, Any] = {}


def _start_worker(queue: Any, device: str, cuda_graphs: bool) -> None:
    """Set up a worker process when it starts."""
    # Ctrl-C reaches the whole process group, but only the parent process decides which workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    _worker.update(queue=queue, device=device, cuda_graphs=cuda_graphs)
    prepare_process(device)


def _carry_out_in_worker(task: Task) -> Done:
    return carry_out(task, _worker["device"], _worker["queue"].put, cuda_graphs=_worker["cuda_graphs"])


def open_executor(device: str, workers: int, *, cuda_graphs: bool = False) -> Executor:
    """Return an executor on this machine.

    Args:
        device: cpu, cuda or cuda:N.
        workers: 1 for an executor in this process; more for as many local processes.
        cuda_graphs: Whether trainings record their networks as CUDA graphs.
    """
    if workers == 1:
        return InProcess(device, cuda_graphs=cuda_graphs)
    return LocalProcesses(device, workers, cuda_graphs=cuda_graphs)
