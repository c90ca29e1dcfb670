"""Files in the artifact folder: weights, and arrays that figures are drawn from without torch.

Each run has one .npz file with the singular values of its embeddings and the retrievals of the hardest classes.
"""

import io
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from results.atomic_files import write_atomically
from results.spec.training_spec import FoldSpec

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FigureData:
    """Arrays of one run.

    The retrievals are those of the concatenated embeddings, one query for each of the q test classes with the lowest
    MAP@R, the hardest class first.

    Attributes:
        spectrum: (d,), singular values of the normalised test embeddings of the first fold's model, the largest first.
        query_images: (q, s, s, c) uint8.
        neighbour_images: (q, k, s, s, c) uint8, the nearest neighbours of each query, the nearest first.
        correct: (q, k), whether the neighbour has the query's class.
        class_names: (q,), the queries' classes.
        neighbour_names: (q, k), the neighbours' classes.
        class_scores: (q,), MAP@R of the queries' classes, fractions of 1.
    """

    spectrum: Floats
    query_images: NDArray[np.uint8]
    neighbour_images: NDArray[np.uint8]
    correct: NDArray[np.bool_]
    class_names: NDArray[np.str_]
    neighbour_names: NDArray[np.str_]
    class_scores: Floats

    def save(self, path: Path) -> None:
        """Write the arrays to an .npz file in one step."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **vars(self))
        write_atomically(path, buffer.getbuffer())

    @classmethod
    def load(cls, path: Path) -> "FigureData":
        """Read the arrays of a file that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{field.name: arrays[field.name] for field in fields(cls)})


def contents_path(artifacts: Path, data_fingerprint: str) -> Path:
    """Return the path of the table of a dataset's samples in the artifact folder."""
    return artifacts / "datasets" / f"{data_fingerprint}.csv"


def read_contents(path: Path) -> pd.DataFrame:
    """Read a table of samples: `class` and `sha256` of each, the beginning of the hash of its file or row."""
    return pd.read_csv(path, keep_default_na=False, dtype={"class": str, "sha256": str})


def figure_data_path(artifacts: Path, run_fingerprint: str) -> Path:
    """Return the path of a run's figure data in the artifact folder."""
    return artifacts / "figure_data" / f"{run_fingerprint}.npz"


def last_epoch_path(weights: Path) -> Path:
    """Return the path of the weights after a training's last epoch; the file lies beside the checkpoint's weights."""
    return weights.with_suffix(".last.pt")


def weights_path(artifacts: Path, spec: FoldSpec) -> Path:
    """Return the path of the best checkpoint of one training of a reproduction."""
    return artifacts / spec.fingerprint[:2] / f"{spec.fingerprint}.pt"
