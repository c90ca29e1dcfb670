"""Tasks, the interface of what runs them (local processes or a Ray cluster), and where their outcomes are stored.

A task is a job with all its inputs, so that any process or machine can run it.
"""

import io
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from protocols.datasets.dataset import FoldData
from protocols.evaluation.evaluate_run import CurveRecorder, TestData, evaluate_run
from protocols.jobs import EvaluateJob, Job, Outcome, TrainJob
from protocols.training.train_fold import train_fold
from protocols.users_code.sources import UsersSource, known_sources, remember_sources
from results.atomic_files import is_sound, write_atomically
from results.records.artifacts import early_path, last_epoch_path, weights_path
from results.records.records import CIRCUMSTANCES, FoldResult, RunRecord, TestCurve
from results.spec.component import SourceName
from results.spec.training_spec import FoldSpec, sources_of_training
from results.store.store import Store

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainTask:
    """A training and the images that it may see, or their features.

    Attributes:
        data: Images of the job's training and validation classes.
        weights: File for the best checkpoint; None keeps no checkpoint.
        observed_on: Test images for a curve of test scores; the training itself cannot see them. None for no curve.
        sources: Users' files, by the hash of their source.
    """

    job: TrainJob
    data: FoldData
    weights: Path | None
    observed_on: TestData | None = None
    sources: Mapping[str, UsersSource] = field(default_factory=known_sources)


@dataclass(frozen=True)
class Trained:
    """The outcome of a training, with a curve of test scores if the task had test images."""

    result: FoldResult
    test_curve: TestCurve | None


@dataclass(frozen=True)
class EvaluateTask:
    """A test evaluation.

    Attributes:
        weights: Files with the checkpoints, one per fold.
        sources: Users' files, by the hash of their source.
    """

    job: EvaluateJob
    data: TestData
    weights: tuple[Path, ...]
    sources: Mapping[str, UsersSource] = field(default_factory=known_sources)


Task = TrainTask | EvaluateTask
TaskResult = Trained | RunRecord


class WorkerDiedError(Exception):
    """A process or a node ended while it ran a task. The other tasks continue."""


class Executor(Protocol):
    """Runs tasks and gives a future for each. `submit` is called in the main thread.

    A task that does not fit into a GPU's memory fails with InputError.

    Attributes:
        device: Device that the tasks run on: cpu, cuda or cuda:N.
        workers: How many tasks run at the same time.
        sharing: How many of them share a GPU; 0 on CPUs.
    """

    device: str
    workers: int
    sharing: int

    def submit(self, task: Task) -> "Future[TaskResult]":
        """Start a task or queue it."""

    def close(self) -> None:
        """End all workers and the trainings that they run."""


def run_task(task: Task, device: str) -> TaskResult:
    """Run a task and write its files, each completely or not at all. All executors call this function."""
    remember_sources(task.sources)
    return _train(task, device) if isinstance(task, TrainTask) else _evaluate(task, device)


def is_foreign(task: Task) -> bool:
    """Whether a task runs code of users or other packages, which can change anything in its process."""
    if isinstance(task, TrainTask):
        return bool(sources_of_training(task.job.spec))
    return any(map(sources_of_training, task.job.specs)) or any(map(SourceName.parse, task.job.metrics))


def _train(task: TrainTask, device: str) -> Trained:
    spec = task.job.spec
    recorder = None if task.observed_on is None else CurveRecorder(spec, task.observed_on, device)
    trained = train_fold(spec, task.data, device=device, observe=recorder)
    if task.weights is not None:
        # The checkpoint is written last: if its file exists, the files beside it exist too.
        if trained.last_weights is not None:
            write_tensors(last_epoch_path(task.weights), trained.last_weights)
        if trained.early_weights is not None:
            write_tensors(early_path(task.weights), trained.early_weights)
        write_tensors(task.weights, trained.weights)
    return Trained(trained.result, recorder and recorder.curve())


def _evaluate(task: EvaluateTask, device: str) -> RunRecord:
    weights = [_read_tensors(path) for path in task.weights]
    last, early = (
        [_read_tensors(path) if path.exists() else None for path in map(beside, task.weights)]
        for beside in (last_epoch_path, early_path)
    )
    return evaluate_run(task.job, weights, task.data, device=device, last_weights=last, early_weights=early)


def _read_tensors(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


def write_tensors(path: Path, tensors: Any) -> None:
    """Write tensors in the format of `torch.save`, completely or not at all."""
    # The buffer in memory is needed because torch reports a full disk as an internal error of its file writer.
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    write_atomically(path, buffer.getbuffer())


def has_checkpoint(artifacts: Path, spec: FoldSpec) -> bool:
    """Return whether the checkpoint of a training exists. If a file of it is damaged, all are removed."""
    weights = weights_path(artifacts, spec)
    files = (weights, last_epoch_path(weights), early_path(weights))
    if damaged := next((file for file in files if file.exists() and not is_sound(file)), None):
        _LOG.warning("the checkpoint %s is damaged; it is removed and made again", damaged)
        for file in files:
            file.unlink(missing_ok=True)
    return weights.exists()


def another_result(stored: FoldResult, repeated: FoldResult) -> str:
    """Say which other result a training has that was made again; nothing if its curve and its end are equal."""
    if stored.model_dump(exclude=CIRCUMSTANCES) == repeated.model_dump(exclude=CIRCUMSTANCES):
        return ""
    was, now = (f"{one.best_map_at_r} after {one.best_iteration}" for one in (stored, repeated))
    return f"another result (MAP@R {now} iterations, stored is {was})"


def stored_outcome(store: Store, job: Job) -> Outcome | None:
    """Return a job's outcome from the store; None if the job must be executed."""
    if isinstance(job, EvaluateJob):
        return store.run(job.fingerprint)
    result = store.fold_result(job.spec.fingerprint)
    if result is None or job.run is None:
        return result
    # A reproduction's training is done if the test scores exist, or the weights that are needed to compute them.
    return result if store.run(job.run) is not None or has_checkpoint(store.artifacts, job.spec) else None


def put_outcome(store: Store, called: str, job: Job, result: TaskResult) -> Outcome:
    """Store the result of a job and return its outcome. Messages name the job by `called`."""
    if not isinstance(result, Trained):
        store.put_run(result)
        return result
    assert isinstance(job, TrainJob)
    # The curve first: once the result is stored, the training is never repeated, and a curve would be lost.
    if result.test_curve is not None:
        store.put_test_curve(result.test_curve)
    stored = store.fold_result(job.spec.fingerprint)
    if stored is not None and (another := another_result(stored, result.result)):
        line = "%s: trained again for its checkpoint, with %s; the stored result stays, the test uses the new weights"
        _LOG.warning(line, called, another)
    store.put_fold(result.result)
    return result.result
