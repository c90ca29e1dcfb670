"""Executors on this machine: one carries out tasks in this process, the other in several local processes."""

import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing import resource_tracker
from queue import Empty
from typing import Any

import torch

from protocols.processes import (
    end_with_parent,
    processes,
    starting,
    surroundings,
    take_over,
    threads_per_training,
)
from protocols.users_files.sources import has_users_code
from reproduce import interrupts
from reproduce.execution.devices import does_not_fit, is_full, prepare_process, spread
from reproduce.execution.executor import Executor, WorkerDiedError, sendable
from reproduce.execution.mps import multi_process_service
from reproduce.execution.tasks import Done, Task, carry_out, is_foreign
from reproduce.monitoring.observer import Tick

_LOG = logging.getLogger(__name__)
_EXIT_SECONDS = 10


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
            future.set_exception(does_not_fit(error) if is_full(error) else error)
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

    For `cuda` the processes are spread over the visible GPUs. Where several have the same GPU, MPS is started if it can
    be. A task that finds the GPU full ends its process. It begins again with one process fewer on that GPU, for the
    rest of the run, until it is alone there.

    Args:
        threads: Threads per training; None takes `threads_per_training` of the device.
        shares: How many executors like this one use the GPU at the same time.
    """

    def __init__(self, device: str, workers: int, *, threads: int | None = None, shares: int = 1) -> None:
        self._threads, self._shares = threads, shares
        self.device, self.workers, self.capacity = device, workers, 2 * workers
        devices = spread(device)
        self._devices = [devices[number % len(devices)] for number in range(workers)]
        self._in_use = list(range(workers))
        self._full: deque[tuple[int, int, Task, Future[Done], BaseException]] = deque()
        self._opened = ExitStack()
        if device.startswith("cuda") and workers > len(devices):
            self._opened.enter_context(multi_process_service())
        self._context = processes()
        self._used_up = [False] * workers
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
        self._used_up[number] = False
        return ProcessPoolExecutor(
            1,
            mp_context=self._context,
            initializer=_start_worker,
            initargs=(self._queues[number], surroundings(), self._devices[number], self._threads),
        )

    def _sharing(self, number: int) -> int:
        """Return how many trainings the GPU of a process has at the same time."""
        return self._shares * [self._devices[each] for each in self._in_use].count(self._devices[number])

    def submit(self, task: Task) -> "Future[Done]":
        """Give the task to the next free process."""
        future: Future[Done] = Future()
        self._waiting.append((task, future))
        self._use_free_processes()
        return future

    def _use_free_processes(self) -> None:
        while self._full:
            self._begin_again(*self._full.popleft())
        for number in self._in_use:
            running = self._tasks[number]
            if self._waiting and (running is None or running.done()):
                task, future = self._waiting.popleft()
                self._tasks[number], sharing = future, self._sharing(number)
                begun = self._begin(number, task, sharing)
                begun.add_done_callback(partial(self._pass_on, number, sharing, task, future))

    def _begin_again(self, number: int, sharing: int, task: Task, future: "Future[Done]", error: BaseException) -> None:
        """Queue a task again that found its GPU full. One that was alone fails."""
        pool, self._tasks[number] = self._pools[number], None
        ended = list((pool._processes or {}).values())
        # The process would keep its part of the memory.
        pool.shutdown(wait=False)
        for process in ended:
            process.join(_EXIT_SECONDS)
        self._pools[number] = self._start(number)
        if sharing == 1:
            future.set_exception(does_not_fit(error))
        elif sharing == self._shares:
            future.set_exception(error)  # The others on this GPU are not in this executor, which cannot help.
        else:
            # Tasks that began together find the GPU full together, which costs one process and not all.
            if sharing == self._sharing(number):
                self._in_use.remove(number)
                self.workers = len(self._in_use)
                device, left = self._devices[number], self._sharing(number)
                _LOG.warning("%s is too small for %d trainings at the same time; from now on %d", device, sharing, left)
            self._waiting.appendleft((task, future))

    def _begin(self, number: int, task: Task, sharing: int) -> "Future[Done]":
        """Give a task to a process. One that has died, has run foreign code or has lost its GPU is replaced."""
        if self._used_up[number]:
            self._pools[number].shutdown(wait=False)
            self._pools[number] = self._start(number)
        self._used_up[number] = is_foreign(task)
        # A process of the pool starts when there is a task for it.
        with starting(self._threads or threads_per_training(self.device)):
            try:
                return self._pools[number].submit(_carry_out_in_worker, task, sharing)
            except BrokenProcessPool:
                self._pools[number].shutdown(wait=False)
                self._pools[number] = self._start(number)
                self._used_up[number] = is_foreign(task)
                return self._pools[number].submit(_carry_out_in_worker, task, sharing)

    def _pass_on(self, number: int, sharing: int, task: Task, future: "Future[Done]", ended: "Future[Done]") -> None:
        reason = self._reasons.pop(future, "the process of this task ended; the system may have had too little memory")
        if ended.cancelled():
            future.cancel()
        elif (error := ended.exception()) is None:
            future.set_result(ended.result())
        elif is_full(error):
            self._full.append((number, sharing, task, future, error))  # A thread of the pool calls this.
        else:
            # After an error of the GPU itself, every other task of the process would fail too.
            self._used_up[number] |= isinstance(error, torch.AcceleratorError)
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
        self._pools = [self._start(number) for number in range(len(self._devices))]

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call, and give waiting tasks to free processes.

        Here tasks begin again that found their GPU full.
        """
        self._use_free_processes()
        ticks = []
        for queue in self._queues.values():
            with suppress(Empty):
                while True:
                    ticks.append(queue.get_nowait())
        return ticks

    def _stop(self) -> None:
        self._waiting.clear()
        self._full.clear()
        self._tasks = [None] * len(self._devices)
        processes = [process for pool in self._pools for process in (pool._processes or {}).values()]
        managers: list[threading.Thread | None] = [pool._executor_manager_thread for pool in self._pools]  # type: ignore[misc]  # wrong stub
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join(5)
        # A pool's own thread waits for the same process. Until it is done, an ended process can still look alive.
        for manager in managers:
            if manager is not None:
                manager.join(5)

    def close(self) -> None:
        """End the processes and the trainings that they run."""
        self._stop()
        for number in range(len(self._devices)):
            self._close_queue(number)
        self._opened.close()

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
    _worker.update(queue=queue, device=device, threads=threads)


def _carry_out_in_worker(task: Task, sharing: int) -> Done:
    device = _worker["device"]
    try:
        # Here and not at the start of the process, since a GPU can be too full even for this.
        prepare_process(device, _worker["threads"], sharing)
        return carry_out(task, device, _worker["queue"].put)
    except Exception as error:
        if (told := sendable(error)) is error:
            raise
        raise told from None


def open_executor(device: str, workers: int, *, processes_only: bool = False) -> Executor:
    """Return an executor on this machine: one worker is this process, more are as many local processes.

    `processes_only` makes one worker a process of its own too, so that its trainings can be ended.
    """
    if workers == 1 and not processes_only:
        return InProcess(device)
    return LocalProcesses(device, workers)
