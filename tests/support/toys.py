"""Small worlds for the tests of the protocols: coloured patterns to train on, a fold of them, made-up results."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.datasets.dataset import Dataset, FoldData, fold_data
from protocols.datasets.splits import as_ranges, mlrc_split
from results.records.records import CurvePoint, FoldResult
from results.spec.component import Component
from results.spec.conditions import Conditions, ImageSettings, OptimizerSettings, TrainingSettings
from results.spec.method import Method
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import TrunkSpec
from tests.support.packs import pack_arrays, packed_dataset
from tests.support.sample_records import changed_spec, some_provenance

TRUNK = TrunkSpec(name="small_conv", weights="random")
IMAGES = ImageSettings(resize=None, crop=8)
CONTRASTIVE = Method(
    name="contrastive",
    loss=Component(name="ContrastiveLoss", arguments={"pos_margin": 0.0, "neg_margin": 0.5}),
    samples_per_class=2,
)
PROXIES = Method(
    name="normalized_softmax",
    loss=Component(name="CosFaceLoss", arguments={"margin": 0.0, "scale": 20.0}),
    samples_per_class=1,
    loss_lr=0.1,
)
UNTRAINED = Method(name="untrained", loss=None)
TEST_COMPONENTS = Method(name="pretrained_test_pca", loss=None, embedder="test_components")
PRETRAINED_PCA = Method(name="pretrained_pca", loss=None, embedder="principal_components")


def patterns(classes: int, per_class: int, side: int) -> NDArray[np.uint8]:
    """Noisy copies of one random 4 x 4 colour pattern per class: (classes * per_class, side, side, 3)."""
    generator = np.random.default_rng(0)
    tiles = generator.integers(0, 256, (classes, 4, 4, 3)).repeat(per_class, axis=0)
    whole = tiles.repeat(side // 4, axis=1).repeat(side // 4, axis=2)
    noisy = whole + generator.normal(0, 40, whole.shape)
    return noisy.clip(0, 255).astype(np.uint8)


def pattern_dataset(folder: Path, classes: int = 16, per_class: int = 4, side: int = 8) -> Dataset:
    """A dataset of `patterns`, packed below `folder`."""
    images = pack_arrays(patterns(classes, per_class, side), folder / f"patterns_{classes}_{per_class}_{side}")
    labels = np.arange(classes).repeat(per_class)
    names = tuple(f"{label}/{i}" for i, label in enumerate(labels))
    return packed_dataset("patterns", tuple(f"class {c}" for c in range(classes)), names, labels, images)


def settings(lr: float = 1e-2, **changes: Any) -> TrainingSettings:
    """A training of a few iterations."""
    short: dict[str, Any] = {
        "batch_size": 8,
        "iterations_per_epoch": 2,
        "max_epochs": 3,
        "validate_every": 1,
        "patience": 100,
        "optimizer": OptimizerSettings(lr=lr),
    }
    return TrainingSettings(**{**short, **changes})


def conditions(trunk: TrunkSpec = TRUNK, **changes: Any) -> Conditions:
    """Small images, a small trunk and eight dimensions."""
    return Conditions(**{"images": IMAGES, "trunk": trunk, "embedding_size": 8, "training": settings(), **changes})


def toy_fold(
    dataset: Dataset, method: Method = CONTRASTIVE, training: TrainingSettings | None = None, **changes: Any
) -> tuple[FoldSpec, FoldData]:
    """A fold of the dataset's MLRC split, as a specification and its images; `changes` go into the specification.

    Conditions can be changed too.
    """
    fold = changes.pop("fold", 0)
    classes = mlrc_split(dataset.n_classes).folds[fold]
    whole: dict[str, Any] = {
        "dataset": dataset.name,
        "data_fingerprint": dataset.fingerprint,
        "split": "mlrc",
        "fold": fold,
        "train_classes": as_ranges(classes.train),
        "validation_classes": as_ranges(classes.validation),
        "method": method,
        "conditions": conditions(training=training or settings()),
        "seed": 1,
    }
    spec = FoldSpec(**whole)
    return changed_spec(spec, **changes), fold_data(dataset, spec)


def made_up_result(
    spec: FoldSpec, score: float, *, reason: str | None = None, beats_untrained: bool = True, wall_time: float = 1.0
) -> FoldResult:
    """A result without a training; with a `reason` one that went NaN."""
    curve = [(0, 0.0 if beats_untrained else score, None), (100, score, 0.5)]
    return FoldResult(
        spec=spec,
        stopped_by="max_epochs" if reason is None else "nan",
        reason=reason,
        iterations=100,
        best_iteration=100,
        curve=tuple(
            CurvePoint(iteration=iteration, map_at_r=value, r_precision=value, precision_at_1=value, loss=loss)
            for iteration, value, loss in curve
        ),
        wall_time=wall_time,
        provenance=some_provenance(),  # Its time stands still, so that equal results are equal.
    )


def same_weights(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two state dicts agree to the bit."""
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)
