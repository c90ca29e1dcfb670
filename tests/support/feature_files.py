"""Folders of features, and setups on them."""

from pathlib import Path
from typing import Any

import numpy as np

from protocols.datasets.dataset import DataRequest, Dataset
from protocols.datasets.feature_files import open_features
from protocols.setup import Setup
from results.spec.conditions import ImageSettings
from results.spec.data_choice import DataChoice
from results.spec.trunk_spec import TrunkSpec
from tests.support.small_setup import small_setup, with_changes

WIDTH = 12


def some_features(classes: int = 16, per_class: int = 4, width: int = WIDTH, seed: int = 0) -> np.ndarray:
    """One direction per class, with noise; rows sorted by class."""
    draw = np.random.default_rng(seed)
    centres = np.repeat(draw.standard_normal((classes, width)), per_class, axis=0)
    return (centres + draw.standard_normal(centres.shape)).astype(np.float32)


def write_features(folder: Path, features: np.ndarray, labels: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "features.npy", features)
    np.save(folder / "labels.npy", np.asarray(labels))
    return folder


def opened_features(folder: Path, cache: Path) -> Dataset:
    return open_features(DataRequest(DataChoice(name="features", root=folder), ImageSettings(), cache))


def feature_setup(folder: Path, **changes: Any) -> Setup:
    """The small setup with rows of features instead of images."""
    labels = np.repeat(np.arange(16), 4)
    dataset = opened_features(write_features(folder / "data", some_features(), labels), folder / "cache")
    trunk = TrunkSpec(name="none", weights="none", width=WIDTH)
    setup = small_setup(folder, dataset=dataset, trunk=trunk, images=ImageSettings())
    return with_changes(setup, **changes)
