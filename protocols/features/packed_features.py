"""Features of a dataset in one memory map. All processes share it, so no process has a copy of the whole."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.verified_files import FileRecord, check_file


@dataclass(frozen=True)
class PackedFeatures:
    """A file of features, one row per image.

    Only the path and the record are pickled. A worker process opens the same memory map, and checks first that the file
    still holds the features that its task was made for.

    Attributes:
        path: An .npy file, float16 or float32 (n, c).
        record: Hash and stamp of the file.
    """

    path: Path
    record: FileRecord

    def check(self) -> None:
        """Raise ChangedFileError unless the file holds these features."""
        check_file(self.path, self.record)

    @cached_property
    def _rows(self) -> NDArray[np.floating[Any]]:
        self.check()
        rows: NDArray[np.floating[Any]] = np.load(self.path, mmap_mode="r")
        return rows

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "record": self.record}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def width(self) -> int:
        """Number of features c of a row."""
        return int(self._rows.shape[1])

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Copy rows (k,) of the file; returns float32 (k, c)."""
        return np.asarray(self._rows[rows], dtype=np.float32)


@dataclass(frozen=True)
class LabelledFeatures:
    """A selection of the rows of a file of features, with their classes. It gives no access to other rows.

    Attributes:
        features: The file.
        rows: Positions in the file, int64 (n,).
        labels: Class ranks, int64 (n,).
    """

    features: PackedFeatures
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.labels):
            raise ValueError(f"{len(self.rows)} rows but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_bytes(self) -> int:
        """Size of the rows as float32, in bytes."""
        return 4 * len(self.rows) * self.features.width

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Copy the features at positions (k,) of this selection; returns float32 (k, c)."""
        return self.features.take(self.rows[positions])

    def of_classes(self, ranks: tuple[int, ...]) -> "LabelledFeatures":
        """Return the rows whose class rank is in `ranks`."""
        return self.select(np.flatnonzero(np.isin(self.labels, np.asarray(ranks, dtype=np.int64))))

    def select(self, positions: NDArray[np.int64]) -> "LabelledFeatures":
        """Return the rows at positions (k,) of this selection, in that order."""
        return LabelledFeatures(self.features, self.rows[positions], self.labels[positions])
