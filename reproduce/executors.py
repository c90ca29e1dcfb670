"""Where jobs are carried out: in this process, or in local processes side by side."""

import io
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any, Protocol

import torch

from protocols.curve_recorder import CurveRecorder
from protocols.evaluation import Embedded, Show, evaluate_run
from protocols.exhibits import FirstFold, exhibit_of
from protocols.folds import FoldData, TestData
from protocols.images.packed import LabelledImages
from protocols.splits import FOLDS
from protocols.training import train_fold
from protocols.work import EvaluateJob, TrainJob
from results.records import FoldResult, RunRecord, TestCurve
from results.specs import FoldSpec


@dataclass(frozen=True)
class TrainTask:
    """A training with the images it may see. weights: file for the best checkpoint; None drops it.

    observed_on: test images for a curve of test scores, which the training itself cannot see.
    """

    job: TrainJob
    data: FoldData
    weights: Path | None
    observed_on: TestData | None = None


@dataclass(frozen=True)
class Trained:
    """What came of a training, with its test scores along the way if they were asked for."""

    result: FoldResult
    test_curve: TestCurve | None


@dataclass(frozen=True)
class Exhibition:
    """What an exhibit takes besides a test: the first fold's training images, the class names, and its file."""

    train: LabelledImages
    class_names: tuple[str, ...]
    path: Path


@dataclass(frozen=True)
class EvaluateTask:
    """A test evaluation with the test images and the checkpoints of its folds. exhibition: None makes no exhibit."""

    job: EvaluateJob
    data: TestData
    weights: tuple[Path, ...]
    exhibition: Exhibition | None = None


THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Task = TrainTask | EvaluateTask
Done = Trained | RunRecord


@dataclass(frozen=True)
class Tick:
    """How far a running training is."""

    fingerprint: str
    iterations: int


class Executor(Protocol):
    """Takes tasks and gives futures. capacity: tasks to have under way at once, so that no worker waits."""

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
        """Ends all workers, trainings in flight included."""


def carry_out(task: Task, device: str, report: Any) -> Done:
    """Does a task here; a checkpoint is whole or absent, whatever happens."""
    if isinstance(task, EvaluateTask):
        weights = [torch.load(path, map_location="cpu", weights_only=True) for path in task.weights]
        return evaluate_run(task.job, weights, task.data, device=device, show=_exhibitor(task, weights[0], device))
    fingerprint = task.job.spec.fingerprint
    recorder = None if task.observed_on is None else CurveRecorder(task.job.spec, task.observed_on, device)
    trained = train_fold(
        task.job.spec,
        task.data,
        device=device,
        on_validation=lambda done: report(Tick(fingerprint, done)),
        observe=recorder,
    )
    if task.weights is not None:
        if trained.class_vectors is not None:
            _write_tensors(trained.class_vectors, vectors_path(task.weights))
        _write_tensors(trained.weights, task.weights)
    return Trained(trained.result, recorder and recorder.curve())


def _exhibitor(task: EvaluateTask, weights: dict[str, torch.Tensor], device: str) -> Show | None:
    """Keeps something to look at of the run, if that was asked for."""
    exhibition = task.exhibition
    if exhibition is None:
        return None
    vectors = vectors_path(task.weights[0])
    known = torch.load(vectors, map_location="cpu", weights_only=True) if vectors.exists() else None
    first = FirstFold(task.job.specs[0], weights, exhibition.train, known)

    def show(record: RunRecord, embedded: Embedded) -> None:
        made = exhibit_of(record, embedded, task.data, first, exhibition.class_names, torch.device(device))
        made.save(exhibition.path)

    return show


def vectors_path(weights: Path) -> Path:
    """Where a checkpoint's proxies lie, beside its weights."""
    return weights.with_suffix(".proxies.pt")


def _write_tensors(weights: Any, path: Path) -> None:
    # Through memory, since torch reports a full disk as an internal error of its file writer.
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        partial.write_bytes(buffer.getbuffer())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def weights_path(artifacts: Path, spec: FoldSpec) -> Path:
    """Where the best checkpoint of a reproduction's training lies."""
    return artifacts / spec.fingerprint[:2] / f"{spec.fingerprint}.pt"


def threads_per_training() -> int:
    """Threads of one training on this machine: a function of its cores alone, so that the number of workers does not
    change the order in which floats are added, and with it the result.
    """
    return max(1, (os.cpu_count() or 1) // FOLDS)


class InProcess:
    """One task after another in this process."""

    workers = 1
    capacity = 1

    def __init__(self, device: str) -> None:
        self.device = device
        self._ticks: list[Tick] = []
        prepare_process(device)

    def submit(self, task: Task) -> "Future[Done]":
        """Runs the task at once; the future is done."""
        future: Future[Done] = Future()
        try:
            future.set_result(carry_out(task, self.device, self._ticks.append))
        except Exception as error:
            future.set_exception(error)
        return future

    def ticks(self) -> list[Tick]:
        """Progress since the last call."""
        ticks, self._ticks = self._ticks, []
        return ticks

    def restart(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        """Nothing to end."""


class LocalProcesses:
    """`workers` processes on this machine, started anew if one of them dies."""

    def __init__(self, device: str, workers: int) -> None:
        self.device, self.workers, self.capacity = device, workers, 2 * workers
        self._context = multiprocessing.get_context("spawn")
        self._queue: Any = self._context.Queue()
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        with _threads_in_environment():
            return ProcessPoolExecutor(
                self.workers,
                mp_context=self._context,
                initializer=_start_worker,
                initargs=(self._queue, self.device),
            )

    def submit(self, task: Task) -> "Future[Done]":
        """Hands the task to the next free process."""
        with _threads_in_environment():
            return self._pool.submit(_carry_out_in_worker, task)

    def restart(self) -> None:
        """A fresh pool after a process died; tasks under way must be submitted again."""
        self._stop()
        self._pool = self._start()

    def ticks(self) -> list[Tick]:
        """Progress since the last call."""
        ticks = []
        try:
            while True:
                ticks.append(self._queue.get_nowait())
        except Empty:
            return ticks

    def _stop(self) -> None:
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(5)

    def close(self) -> None:
        """Ends the processes, trainings in flight included."""
        self._stop()
        self._queue.close()
        self._queue.cancel_join_thread()


_worker: dict[str, Any] = {}


def _start_worker(queue: Any, device: str) -> None:
    """Runs once in every worker process."""
    # Ctrl-C reaches the whole process group; the parent decides what to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker.update(queue=queue, device=device)
    prepare_process(device)


def _end_with_parent() -> None:
    """A parent killed outright cannot end its workers, so they watch it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _carry_out_in_worker(task: Task) -> Done:
    return carry_out(task, _worker["device"], _worker["queue"].put)


def prepare_process(device: str, threads: int | None = None) -> None:
    """Settings of a process that trains: threads, by default this machine's, and deterministic kernels on a GPU."""
    torch.set_num_threads(threads or threads_per_training())
    if device.startswith("cuda"):
        # Without it cuBLAS may choose kernels whose sums differ from run to run.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False


@contextmanager
def _threads_in_environment() -> Iterator[None]:
    """Libraries of a starting process read their thread count from the environment."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads_per_training())))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def open_executor(device: str, workers: int) -> Executor:
    """This process for one worker, local processes for more."""
    return InProcess(device) if workers == 1 else LocalProcesses(device, workers)
