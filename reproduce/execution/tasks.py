"""Where jobs are carried out: in this process, or in local processes side by side."""

import io
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from protocols.evaluation.curve_recorder import CurveRecorder
from protocols.evaluation.evaluate_run import Embedded, Show, evaluate_run
from protocols.evaluation.make_exhibit import FirstFold, exhibit_of
from protocols.evaluation.test_data import TestData
from protocols.images.packed_images import LabelledImages
from protocols.jobs import EvaluateJob, TrainJob
from protocols.training.fold_data import FoldData
from protocols.training.train_fold import train_fold
from reproduce.monitoring.observer import Tick
from results.artifacts import vectors_path
from results.records import FoldResult, RunRecord, TestCurve
from results.whole_files import write_whole


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


Task = TrainTask | EvaluateTask
Done = Trained | RunRecord


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


def _write_tensors(weights: Any, path: Path) -> None:
    # Through memory, since torch reports a full disk as an internal error of its file writer.
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    write_whole(path, buffer.getbuffer())
