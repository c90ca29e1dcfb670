"""Files in the artifact folder: weights, and the contents of datasets."""

from pathlib import Path

import pandas as pd

from results.spec.training_spec import FoldSpec


def contents_path(artifacts: Path, data_fingerprint: str) -> Path:
    """Return the path of the table of a dataset's samples in the artifact folder."""
    return artifacts / "datasets" / f"{data_fingerprint}.csv"


def read_contents(path: Path) -> pd.DataFrame:
    """Read a table of samples: `class` and `sha256` of each, the beginning of the hash of its file or row."""
    return pd.read_csv(path, keep_default_na=False, dtype={"class": str, "sha256": str})


def last_epoch_path(weights: Path) -> Path:
    """Return the path of the weights after a training's last epoch; the file lies beside the checkpoint's weights."""
    return weights.with_suffix(".last.pt")


def early_path(weights: Path) -> Path:
    """Return the path of the best weights up to a training's early epoch, where a later epoch was better."""
    return weights.with_suffix(".early.pt")


def weights_path(artifacts: Path, spec: FoldSpec) -> Path:
    """Return the path of the best checkpoint of one training of a reproduction."""
    return artifacts / spec.fingerprint[:2] / f"{spec.fingerprint}.pt"
