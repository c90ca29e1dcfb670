"""Executors on this machine: one carries out tasks in this process, the other in several local processes."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import resource_tracker
from queue import Empty
from typing import Any

from reproduce import interrupts
from reproduce.execution.carry_out import carry_out
from reproduce.execution.devices import prepare_process, threads_in_environment
from reproduce.execution.executor import Executor
from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick


class InProcess:
    """Carries out one task after another in this process.

    Args:
        device: cpu, cuda or cuda:N.
    """

    workers = 1
    capacity = 1

    def __init__(self, device: str) -> None:
        self.device = device
        self._ticks: list[Tick] = []
        prepare_process(device)

    def submit(self, task: Task) -> "Future[Done]":
        """Carry out the task at once and return a future that is done."""
        future: Future[Done] = Future()
        try:
            with interrupts.immediate():
                future.set_result(carry_out(task, self.device, self._ticks.append))
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
    """

    def __init__(self, device: str, workers: int) -> None:
        self.device, self.workers, self.capacity = device, workers, 2 * workers
        self._context = multiprocessing.get_context("spawn")
        _start_quiet_tracker()
        self._queue: Any = self._context.Queue()
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        with threads_in_environment():
            return ProcessPoolExecutor(
                self.workers,
                mp_context=self._context,
                initializer=_start_worker,
                initargs=(self._queue, self.device),
            )

    def submit(self, task: Task) -> "Future[Done]":
        """Give the task to the next free process."""
        # A process of the pool starts when there is a task for it.
        with threads_in_environment(), interrupts.kept_from_children():
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


def _start_quiet_tracker() -> None:
    """Start the process that removes semaphores after a killed parent, without its warning that there were some."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker")))
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


_worker: dict[str, Any] = {}


def _start_worker(queue: Any, device: str) -> None:
    """Set up a worker process when it starts."""
    # Ctrl-C reaches the whole process group, but only the parent process decides which workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker.update(queue=queue, device=device)
    prepare_process(device)


def _end_with_parent() -> None:
    """End this worker when its parent ends. A parent that was killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _carry_out_in_worker(task: Task) -> Done:
    return carry_out(task, _worker["device"], _worker["queue"].put)


def open_executor(device: str, workers: int) -> Executor:
    """Return an executor on this machine.

    Args:
        device: cpu, cuda or cuda:N.
        workers: 1 for an executor in this process; more for as many local processes.
    """
    return InProcess(device) if workers == 1 else LocalProcesses(device, workers)
