"""Tasks and their outcomes. A task is a job with all its inputs, so that any process or machine can run it."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protocols.evaluation.evaluate_run import CurveRecorder, Embedded, UseEmbeddings, evaluate_run
from protocols.evaluation.make_figure_data import FirstFold, figure_data_of
from protocols.evaluation.test_data import TestData
from protocols.jobs import EvaluateJob, TrainJob
from protocols.problem import Problem
from protocols.samples import Samples
from protocols.training.build_method import uses_foreign_code
from protocols.training.embedding_recorder import EmbeddingRecorder
from protocols.training.fold_data import FoldData
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from protocols.users_code.sources import UsersSource, known_sources, remember_sources
from reproduce.monitoring.observer import Tick
from results.records.artifacts import figure_data_path, last_epoch_path, recording_path, vectors_path
from results.records.records import FoldResult, RunRecord, TestCurve
from results.spec.experiment_spec import RecordingSettings
from results.spec.source_names import SourceName
from results.whole_files import write_whole


@dataclass(frozen=True)
class TrainTask:
    """A training and the images that it may see, or their features.

    Attributes:
        data: Images of the job's training and validation classes.
        weights: File for the best checkpoint; None keeps no checkpoint.
        observed_on: Test images for a curve of test scores; the training itself cannot see them. None for no curve.
        recordings: Embeddings to keep in a file beside the weights; None keeps none.
        sources: Users' files, by the hash of their source.
    """

    job: TrainJob
    data: FoldData
    weights: Path | None
    observed_on: TestData | None = None
    recordings: RecordingSettings | None = None
    sources: Mapping[str, UsersSource] = field(default_factory=known_sources)

    @property
    def samples(self) -> tuple[Samples, ...]:
        """All that the task reads."""
        observed = () if self.observed_on is None else self.observed_on.samples
        return (self.data.train, self.data.validation, *observed)


@dataclass(frozen=True)
class Trained:
    """The outcome of a training, with a curve of test scores if the task had test images."""

    result: FoldResult
    test_curve: TestCurve | None


@dataclass(frozen=True)
class FigureInputs:
    """What figure data need and a test does not: training images of the first fold, class names and their file."""

    train: Samples
    class_names: tuple[str, ...]
    path: Path


def figure_inputs(problem: Problem, job: EvaluateJob, artifacts: Path) -> FigureInputs | None:
    """Return what figure data need, for the first reproduction of a method; None for the others."""
    if job.run > 0 or job.search > 0:
        return None
    train = problem.training_data(job.specs[0]).train
    return FigureInputs(train, problem.dataset.class_names, figure_data_path(artifacts, job.fingerprint))


@dataclass(frozen=True)
class EvaluateTask:
    """A test evaluation.

    Attributes:
        weights: Files with the checkpoints, one per fold.
        figure_inputs: Inputs of the figure data; None writes none.
        sources: Users' files, by the hash of their source.
    """

    job: EvaluateJob
    data: TestData
    weights: tuple[Path, ...]
    figure_inputs: FigureInputs | None = None
    sources: Mapping[str, UsersSource] = field(default_factory=known_sources)

    @property
    def samples(self) -> tuple[Samples, ...]:
        """All that the task reads."""
        shown = () if self.figure_inputs is None else (self.figure_inputs.train,)
        return (*self.data.samples, *shown)


Task = TrainTask | EvaluateTask
TaskResult = Trained | RunRecord
WriteFiles = Callable[[], None]


def run_task(task: Task, device: str, report: Callable[[Tick], None]) -> TaskResult:
    """Run a task and write its files. Each file is written completely or not at all.

    All executors call this function.

    Args:
        report: Gets the progress of a training at its beginning and at each of its validations.
    """
    remember_sources(task.sources)
    done, write = _worked(task, device, report)
    write()
    return done


def _worked(
    task: Task, device: str, report: Callable[[Tick], None]
) -> tuple[Trained, WriteFiles] | tuple[RunRecord, WriteFiles]:
    return _train(task, device, report) if isinstance(task, TrainTask) else _evaluate(task, device)


def is_foreign(task: Task) -> bool:
    """Whether a task runs code of users or other packages, which can change anything in its process."""
    if isinstance(task, TrainTask):
        return uses_foreign_code(task.job.spec)
    return any(map(uses_foreign_code, task.job.specs)) or any(map(SourceName.parse, task.job.metrics))


def _train(task: TrainTask, device: str, report: Callable[[Tick], None]) -> tuple[Trained, WriteFiles]:
    spec = task.job.spec
    report(Tick(spec.fingerprint, 0))
    recorder = None if task.observed_on is None else CurveRecorder(spec, task.observed_on, device)
    embeddings = None if task.recordings is None else EmbeddingRecorder(task.recordings, spec, task.data, device)

    def observe(model: EmbeddingModel, iterations: int) -> None:
        if recorder is not None:
            recorder(model, iterations)
        report(Tick(spec.fingerprint, iterations))

    trained = train_fold(spec, task.data, device=device, observe=observe, record=embeddings)

    def write() -> None:
        if task.weights is None:
            return
        # The checkpoint is written last: if its file exists, the files beside it exist too.
        if embeddings is not None:
            embeddings.recording().save(recording_path(task.weights))
        if trained.class_vectors is not None:
            write_tensors(vectors_path(task.weights), trained.class_vectors)
        if trained.last_weights is not None:
            write_tensors(last_epoch_path(task.weights), trained.last_weights)
        write_tensors(task.weights, trained.weights)

    return Trained(trained.result, recorder and recorder.curve()), write


def _evaluate(task: EvaluateTask, device: str) -> tuple[RunRecord, WriteFiles]:
    weights = [_read_tensors(path) for path in task.weights]
    last_files = [last_epoch_path(path) for path in task.weights]
    last_weights = [_read_tensors(path) if path.exists() else None for path in last_files]
    files: list[WriteFiles] = []
    make = _figure_data_maker(task, weights[0], device, files)
    record = evaluate_run(task.job, weights, task.data, device=device, use_embeddings=make, last_weights=last_weights)

    def write() -> None:
        for file in files:
            file()

    return record, write


def _figure_data_maker(
    task: EvaluateTask, weights: dict[str, Tensor], device: str, files: list[WriteFiles]
) -> UseEmbeddings | None:
    """Return a function that makes the figure data, and adds to `files` how they are written; None without any."""
    inputs = task.figure_inputs
    if inputs is None:
        return None
    vectors_file = vectors_path(task.weights[0])
    vectors = _read_tensors(vectors_file) if vectors_file.exists() else None
    first = FirstFold(task.job.specs[0], weights, inputs.train, vectors)

    def make(record: RunRecord, embedded: Embedded) -> None:
        data = figure_data_of(record, embedded, task.data, first, inputs.class_names, torch.device(device))
        files.append(lambda: data.save(inputs.path))

    return make


def _read_tensors(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


def write_tensors(path: Path, tensors: Any) -> None:
    """Write tensors in the format of `torch.save`, completely or not at all."""
    # The buffer in memory is needed because torch reports a full disk as an internal error of its file writer.
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    write_whole(path, buffer.getbuffer())
