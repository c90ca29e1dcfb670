"""Executors on this machine: one carries out tasks in this process, the other in several local processes."""

import os
import signal
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import resource_tracker
from queue import Empty
from typing import Any

from protocols.processes import end_with_parent, processes, starting, surroundings, take_over
from protocols.users_files.sources import has_users_code
from reproduce import interrupts
from reproduce.execution.devices import prepare_process
from reproduce.execution.executor import Executor, WorkerDiedError
from reproduce.execution.tasks import Done, Task, carry_out, is_foreign
from reproduce.monitoring.observer import Tick


class InProcess:
    """Carries out one task after another in this process."""

    workers = 1
    capacity = 1

    def __init__(self, device: str) -> None:
        self.device = device
        self._ticks: list[Tick] = []
        self._apart: LocalProcesses | None = None
        prepare_process(device)

    def submit(self, task: Task) -> "Future[Done]":
        """Carry out the task at once and return a future that is done.

        A task with foreign code gets a process of its own, so that what the code changes does not reach this one. If
        this one has such code already, all tasks get processes.
        """
        if is_foreign(task) or has_users_code():
            self._apart = self._apart or LocalProcesses(self.device, 1)
            return self._apart.submit(task)
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
        return ticks if self._apart is None else [*ticks, *self._apart.ticks()]

    def end(self, future: "Future[Done]", reason: str) -> None:
        """End a task that has a process of its own; others have ended when `submit` returns their future."""
        if self._apart is not None:
            self._apart.end(future, reason)

    def restart(self) -> None:
        """Start the process for tasks with foreign code anew, if there is one."""
        if self._apart is not None:
            self._apart.restart()

    def close(self) -> None:
        """End the process for tasks with foreign code, if there is one."""
        if self._apart is not None:
            self._apart.close()


class LocalProcesses:
    """Carries out tasks in several processes on this machine.

    Each process has a pool of its own. So a process that dies costs its own task a retry, and no other task. A process
    that has run foreign code gets no other task: the code may have changed anything in it.

    Args:
        threads: Threads per training; None takes `threads_per_training()`.
    """

    def __init__(self, device: str, workers: int, *, threads: int | None = None) -> None:
        self._threads = threads
        self.device, self.workers, self.capacity = device, workers, 2 * workers
        self._context = processes()
        self._has_foreign_code = [False] * workers
        _start_quiet_tracker()
        self._queues: dict[int, Any] = {}
        self._pools = [self._start(number) for number in range(workers)]
        self._tasks: list[Future[Done] | None] = [None] * workers
        self._waiting: deque[tuple[Task, Future[Done]]] = deque()
        self._reasons: dict[Future[Done], str] = {}

    def _start(self, number: int) -> ProcessPoolExecutor:
        # A process that is killed can hold the lock of its queue for ever, so each process has a new queue.
        self._close_queue(number)
        self._queues[number] = self._context.Queue()
        self._has_foreign_code[number] = False
        return ProcessPoolExecutor(
            1,
            mp_context=self._context,
            initializer=_start_worker,
            initargs=(self._queues[number], surroundings(), self.device, self._threads),
        )

    def submit(self, task: Task) -> "Future[Done]":
        """Give the task to the next free process."""
        future: Future[Done] = Future()
        self._waiting.append((task, future))
        self._use_free_processes()
        return future

    def _use_free_processes(self) -> None:
        for number, running in enumerate(self._tasks):
            if self._waiting and (running is None or running.done()):
                task, future = self._waiting.popleft()
                self._tasks[number] = future
                self._begin(number, task).add_done_callback(partial(self._pass_on, future))

    def _begin(self, number: int, task: Task) -> "Future[Done]":
        """Give a task to a process. A process that has died, or has run foreign code, is replaced."""
        if self._has_foreign_code[number]:
            self._pools[number].shutdown(wait=False)
            self._pools[number] = self._start(number)
        self._has_foreign_code[number] = is_foreign(task)
        # A process of the pool starts when there is a task for it.
        with starting():
            try:
                return self._pools[number].submit(_carry_out_in_worker, task)
            except BrokenProcessPool:
                self._pools[number].shutdown(wait=False)
                self._pools[number] = self._start(number)
                self._has_foreign_code[number] = is_foreign(task)
                return self._pools[number].submit(_carry_out_in_worker, task)

    def _pass_on(self, future: "Future[Done]", ended: "Future[Done]") -> None:
        reason = self._reasons.pop(future, "the process of this task ended; the system may have had too little memory")
        if ended.cancelled():
            future.cancel()
        elif (error := ended.exception()) is None:
            future.set_result(ended.result())
        else:
            future.set_exception(WorkerDiedError(reason) if isinstance(error, BrokenProcessPool) else error)

    def end(self, future: "Future[Done]", reason: str) -> None:
        """Kill the process of a task that hangs; the next task starts another one."""
        if future in self._tasks and not future.done():
            self._reasons[future] = reason
            for process in list((self._pools[self._tasks.index(future)]._processes or {}).values()):
                process.kill()

    def restart(self) -> None:
        """Start all processes anew. Unfinished tasks must be submitted again."""
        self._stop()
        self._pools = [self._start(number) for number in range(self.workers)]

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call, and give waiting tasks to free processes."""
        self._use_free_processes()
        ticks = []
        for queue in self._queues.values():
            with suppress(Empty):
                while True:
                    ticks.append(queue.get_nowait())
        return ticks

    def _stop(self) -> None:
        self._waiting.clear()
        self._tasks = [None] * self.workers
        processes = [process for pool in self._pools for process in (pool._processes or {}).values()]
        managers: list[threading.Thread | None] = [pool._executor_manager_thread for pool in self._pools]  # type: ignore[misc]  # wrong stub
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(5)
        # A pool's own thread waits for the same process. Until it is done, an ended process can still look alive.
        for manager in managers:
            if manager is not None:
                manager.join(5)

    def close(self) -> None:
        """End the processes and the trainings that they run."""
        self._stop()
        for number in range(self.workers):
            self._close_queue(number)

    def _close_queue(self, number: int) -> None:
        if (queue := self._queues.pop(number, None)) is not None:
            queue.close()
            queue.cancel_join_thread()


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


def _start_worker(queue: Any, around: tuple[Mapping[str, str], str], device: str, threads: int | None) -> None:
    # Ctrl-C reaches the whole process group, but only the parent process decides which workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    take_over(*around)
    _worker.update(queue=queue, device=device)
    prepare_process(device, threads)


def _carry_out_in_worker(task: Task) -> Done:
    return carry_out(task, _worker["device"], _worker["queue"].put)


def open_executor(device: str, workers: int, *, processes_only: bool = False) -> Executor:
    """Return an executor on this machine: one worker is this process, more are as many local processes.

    `processes_only` makes one worker a process of its own too, so that its trainings can be ended.
    """
    if workers == 1 and not processes_only:
        return InProcess(device)
    return LocalProcesses(device, workers)
