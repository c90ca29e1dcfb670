"""The executor on this machine: it runs tasks in local processes."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import torch

from protocols.machine.processes import EndedProcessError, WorkerProcess, threads_per_training
from reproduce.run.devices import full_gpu, is_full, multi_process_service, prepare_process, spread
from reproduce.run.tasks import Task, TaskResult, WorkerDiedError, is_foreign, run_task
from results.wording import first_line


class LocalProcesses:
    """Runs tasks in several processes on this machine.

    A process that dies fails its own task, and no other. A process that has run foreign code gets no other task: the
    code may have changed anything in it.

    For `cuda` the processes are spread over the visible GPUs, and so are the tasks where there are fewer. Where several
    have the same GPU, MPS is started if it can be.
    """

    def __init__(self, device: str, workers: int) -> None:
        self.device, self.workers = device, workers
        devices = spread(device)
        used = [devices[number % len(devices)] for number in range(workers)]
        self.sharing = max(map(used.count, used)) if device.startswith("cuda") else 0
        self._opened = ExitStack()
        self._slots = [_Slot(each, used.count(each)) for each in used]
        self._free, self._lock = list(self._slots), threading.Lock()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="worker")
        if device.startswith("cuda"):
            if workers > len(devices):
                self._opened.enter_context(multi_process_service(self._slots[0].try_out))
            # Processes take seconds to set up a GPU, so they all begin now.
            for _ in self._slots:
                self._threads.submit(self._try_out)

    def _try_out(self) -> None:
        with self._taken() as slot:
            slot.try_out()

    def submit(self, task: Task) -> "Future[TaskResult]":
        """Give the task to the next free process."""
        return self._threads.submit(self._run, task)

    def _run(self, task: Task) -> TaskResult:
        with self._taken() as slot:
            return slot.run(task)

    @contextmanager
    def _taken(self) -> "Iterator[_Slot]":
        """Take a free slot of the GPU with the fewest tasks. There is one, since there are as many threads."""
        with self._lock:
            tasks = Counter(slot.device for slot in self._slots) - Counter(slot.device for slot in self._free)
            slot = min(self._free, key=lambda one: tasks[one.device])
            self._free.remove(slot)
        try:
            yield slot
        finally:
            with self._lock:
                self._free.append(slot)

    def close(self) -> None:
        """End the processes and the trainings that they run."""
        for slot in self._slots:
            slot.close()
        self._threads.shutdown(cancel_futures=True)
        for slot in self._slots:
            slot.end()
        self._opened.close()


class _Slot:
    """A place for one task at a time, with a process that is started when there is a task for it."""

    def __init__(self, device: str, sharing: int) -> None:
        self.device, self._sharing, self._threads = device, sharing, threads_per_training(device)
        self._worker: WorkerProcess | None = None
        self._closed, self._lock = False, threading.Lock()

    def run(self, task: Task) -> TaskResult:
        worker, reusable = self._started(), False
        try:
            result: TaskResult = worker.call(_run_in_worker, task, self.device, self._threads, self._sharing)
            reusable = not is_foreign(task)
        except EndedProcessError as error:
            raise WorkerDiedError(str(error)) from None
        except Exception as error:
            # After an error of the GPU itself, every other task of the process would fail too.
            reusable = not (is_foreign(task) or isinstance(error, torch.AcceleratorError))
            raise full_gpu(error, self.device, self._sharing) if is_full(error) else error from None
        finally:
            if not reusable:
                self.end()
        return result

    def try_out(self) -> str | None:
        """Let the process use its device; return why it cannot, after its end."""
        try:
            self._started().call(_use, self.device, self._threads, self._sharing)
        except Exception as error:
            self.end()
            return f"{type(error).__name__}: {first_line(error)}"
        return None

    def _started(self) -> WorkerProcess:
        with self._lock:
            if self._closed:
                raise WorkerDiedError("the run ends")
            if self._worker is not None and not self._worker.is_alive():
                self._worker.end()
                self._worker = None
            self._worker = self._worker or WorkerProcess(self._threads)
            return self._worker

    def end(self) -> None:
        """End the process, if there is one; no task may run in it."""
        with self._lock:
            if self._worker is not None:
                self._worker.end()
            self._worker = None

    def close(self) -> None:
        """Kill the process and start no other; a task that it runs fails."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.kill()


def _use(device: str, threads: int, sharing: int) -> None:
    prepare_process(device, threads, sharing)
    torch.ones(2, device=device).sum().item()


def _run_in_worker(task: Task, device: str, threads: int, sharing: int) -> TaskResult:
    # Here and not at the start of the process, since a GPU can be too full even for this.
    prepare_process(device, threads, sharing)
    return run_task(task, device)
