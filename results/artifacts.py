"""What a reproduction leaves to look at: a sample of its embeddings, its proxies, retrievals of its hardest classes.

Kept as one .npz file per run in the artifact folder, so that figures can be drawn where there is no torch.
"""

import io
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from results.training_spec import FoldSpec
from results.whole_files import write_whole

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Exhibit:
    """Arrays of one run; embeddings are those of the first fold's model, normalised.

    test_embeddings (n, d), test_labels (n,): some images of some test classes. train_embeddings (m, d), train_labels:
    a few images of some training classes, as 0..C-1. proxies (p, d), proxy_labels: those of the same training classes;
    empty for losses without. spectrum (d,): singular values of all test embeddings, largest first.
    query_images (q, s, s, c), neighbour_images (q, k, s, s, c): uint8, retrievals of the concatenated embeddings for
    the classes with the lowest MAP@R, hardest first. correct (q, k): whether a neighbour is of the query's class.
    class_names (q,), neighbour_names (q, k): of the classes. class_scores (q,): the class's MAP@R.
    """

    test_embeddings: Floats
    test_labels: Ints
    train_embeddings: Floats
    train_labels: Ints
    proxies: Floats
    proxy_labels: Ints
    spectrum: Floats
    query_images: NDArray[np.uint8]
    neighbour_images: NDArray[np.uint8]
    correct: NDArray[np.bool_]
    class_names: NDArray[np.str_]
    neighbour_names: NDArray[np.str_]
    class_scores: Floats

    def save(self, path: Path) -> None:
        """Writes the file; it is whole or absent."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **{field.name: getattr(self, field.name) for field in fields(self)})
        write_whole(path, buffer.getbuffer())

    @classmethod
    def load(cls, path: Path) -> "Exhibit":
        """The file's arrays."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{field.name: arrays[field.name] for field in fields(cls)})


def exhibit_path(artifacts: Path, run_fingerprint: str) -> Path:
    """Where a run's exhibit lies."""
    return artifacts / "exhibits" / f"{run_fingerprint}.npz"


def vectors_path(weights: Path) -> Path:
    """Where a checkpoint's proxies lie, beside its weights."""
    return weights.with_suffix(".proxies.pt")


def weights_path(artifacts: Path, spec: FoldSpec) -> Path:
    """Where the best checkpoint of a reproduction's training lies."""
    return artifacts / spec.fingerprint[:2] / f"{spec.fingerprint}.pt"
