"""Tasks and their outcomes. A task is a job with all its inputs, so that any process or machine can carry it out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from protocols.evaluation.test_data import TestData
from protocols.jobs import EvaluateJob, TrainJob
from protocols.samples import Samples
from protocols.source_files import known_files
from protocols.training.fold_data import FoldData
from results.recording_settings import RecordingSettings
from results.records import FoldResult, RunRecord, TestCurve


@dataclass(frozen=True)
class TrainTask:
    """A training and the images that it may see, or their features.

    Attributes:
        job: The training.
        data: Images of its training and validation classes.
        weights: File for the best checkpoint; None keeps no checkpoint.
        observed_on: Test images for a curve of test scores; the training itself cannot see them. None for no curve.
        recordings: Embeddings to keep in a file beside the weights; None keeps none.
        sources: Files with users' classes and metrics, by the hash of their source.
    """

    job: TrainJob
    data: FoldData
    weights: Path | None
    observed_on: TestData | None = None
    recordings: RecordingSettings | None = None
    sources: Mapping[str, Path] = field(default_factory=known_files)


@dataclass(frozen=True)
class Trained:
    """The outcome of a training.

    Attributes:
        result: The result of the training.
        test_curve: Test scores during the training; None if the task had no test images.
    """

    result: FoldResult
    test_curve: TestCurve | None


@dataclass(frozen=True)
class Exhibition:
    """The inputs of an exhibit that a test evaluation does not have.

    Attributes:
        train: Training images of the first fold, or their features.
        class_names: Names of all classes.
        path: File of the exhibit.
    """

    train: Samples
    class_names: tuple[str, ...]
    path: Path


@dataclass(frozen=True)
class EvaluateTask:
    """A test evaluation.

    Attributes:
        job: The test evaluation.
        data: The test images.
        weights: Files with the checkpoints, one per fold.
        exhibition: Inputs of the exhibit; None makes no exhibit.
        sources: Files with users' classes and metrics, by the hash of their source.
    """

    job: EvaluateJob
    data: TestData
    weights: tuple[Path, ...]
    exhibition: Exhibition | None = None
    sources: Mapping[str, Path] = field(default_factory=known_files)


Task = TrainTask | EvaluateTask
Done = Trained | RunRecord
