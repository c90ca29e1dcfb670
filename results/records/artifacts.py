"""Files in the artifact folder: weights, arrays that figures are drawn from without torch, and what datasets hold.

Each run has one .npz file with sampled embeddings and the retrievals of the hardest classes.
"""

import io
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from results.atomic_files import write_atomically
from results.spec.training_spec import FoldSpec

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class _Arrays:
    """A dataclass of arrays in a file."""

    def save(self, path: Path) -> None:
        """Write the arrays to an .npz file in one step."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **vars(self))
        write_atomically(path, buffer.getbuffer())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the arrays of a file that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{field.name: arrays[field.name] for field in fields(cls)})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Contents(_Arrays):
    """Which samples a dataset has, to find them again in other data.

    Attributes:
        class_names: (c,), in the order of the class ranks.
        labels: (n,), the class rank of each sample.
        hashes: (n,) uint64, the first 8 bytes of the SHA-256 of its image file or of its row of features; 0 if unknown.
    """

    class_names: NDArray[np.str_]
    labels: Ints
    hashes: NDArray[np.uint64]

    def at(self, chosen: NDArray[np.bool_]) -> Self:
        """Return some of the samples; `chosen` is (n,)."""
        return replace(self, labels=self.labels[chosen], hashes=self.hashes[chosen])

    def of_classes(self, ranks: Iterable[int]) -> Self:
        """Return the samples of these classes."""
        return self.at(np.isin(self.labels, list(ranks)))

    @property
    def names(self) -> set[str]:
        """The names of the classes that have a sample."""
        return set(self.class_names[np.unique(self.labels)].tolist())


@dataclass(frozen=True)
class FigureData(_Arrays):
    """Arrays of one run. Its embeddings are normalised and come from the first fold's model.

    The retrievals are those of the concatenated embeddings, one query for each of the q test classes with the lowest
    MAP@R, the hardest class first.

    Attributes:
        test_embeddings: (n, d), a sample of images of a sample of test classes.
        test_labels: (n,), their classes.
        spectrum: (d,), singular values of all test embeddings, the largest first.
        query_images: (q, s, s, c) uint8.
        neighbour_images: (q, k, s, s, c) uint8, the nearest neighbours of each query, the nearest first.
        correct: (q, k), whether the neighbour has the query's class.
        class_names: (q,), the queries' classes.
        neighbour_names: (q, k), the neighbours' classes.
        class_scores: (q,), MAP@R of the queries' classes, fractions of 1.
        test_names: Names of the classes in `test_labels`, in the order of their labels.
    """

    test_embeddings: Floats
    test_labels: Ints
    spectrum: Floats
    query_images: NDArray[np.uint8]
    neighbour_images: NDArray[np.uint8]
    correct: NDArray[np.bool_]
    class_names: NDArray[np.str_]
    neighbour_names: NDArray[np.str_]
    class_scores: Floats
    test_names: NDArray[np.str_]


def contents_path(artifacts: Path, data_fingerprint: str) -> Path:
    """Return the path of a dataset's `Contents` in the artifact folder."""
    return artifacts / "datasets" / f"{data_fingerprint}.npz"


def figure_data_path(artifacts: Path, run_fingerprint: str) -> Path:
    """Return the path of a run's figure data in the artifact folder."""
    return artifacts / "figure_data" / f"{run_fingerprint}.npz"


def last_epoch_path(weights: Path) -> Path:
    """Return the path of the weights after a training's last epoch; the file lies beside the checkpoint's weights."""
    return weights.with_suffix(".last.pt")


def weights_path(artifacts: Path, spec: FoldSpec) -> Path:
    """Return the path of the best checkpoint of one training of a reproduction."""
    return artifacts / spec.fingerprint[:2] / f"{spec.fingerprint}.pt"
