"""Jobs with all that they take, so that any process or machine can do them, and what comes of them."""

from dataclasses import dataclass
from pathlib import Path

from protocols.evaluation.test_data import TestData
from protocols.images.packed_images import LabelledImages
from protocols.jobs import EvaluateJob, TrainJob
from protocols.training.fold_data import FoldData
from results.records import FoldResult, RunRecord, TestCurve


@dataclass(frozen=True)
class TrainTask:
    """A training with the images it may see.

    Attributes:
        job: The training.
        data: Images of its training and validation classes.
        weights: File for the best checkpoint; None keeps no checkpoint.
        observed_on: Test images for a curve of test scores, which the training itself cannot see; None for no curve.
    """

    job: TrainJob
    data: FoldData
    weights: Path | None
    observed_on: TestData | None = None


@dataclass(frozen=True)
class Trained:
    """A finished training, with its test scores along the way if they were asked for."""

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
