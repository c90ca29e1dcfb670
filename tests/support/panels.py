"""Experiment files written by tests, with and without panels."""

import json
from pathlib import Path

from results.spec.experiment_spec import Experiment
from tests.support.experiment_files import load_experiment

SHARED = {
    "title": "Two panels",
    "methods": ["untrained", "cosface"],
    "trunk": {"name": "small_conv", "weights": "random"},
    "embedding_size": 16,
    "dataset": {"name": "glyphs"},
    "images": {"resize": None, "crop": 32, "area": [0.6, 1.0], "ratio": [0.9, 1.1], "flip": False},
    "training": {
        "batch_size": 16,
        "iterations_per_epoch": 3,
        "max_epochs": 2,
        "validate_every": 1,
        "optimizer": {"name": "Adam", "lr": 1e-3, "arguments": {}},
    },
    "search": {"trials": 0},
    "reproductions": 1,
    "folds": 1,
}


def table_file(folder: Path, panels: object, **changes: object) -> str:
    path = folder / "both.yaml"
    path.write_text(json.dumps({**SHARED, **changes, "panels": panels}))
    return str(path)


def written(folder: Path, **changes: object) -> Experiment:
    path = folder / "one.yaml"
    path.write_text(json.dumps({**SHARED, **changes}))
    return load_experiment(str(path), {})


PANELS = {"small": {"training": {"batch_size": 8}}, "wide": {"embedding_size": 32, "protocol": "standard"}}
