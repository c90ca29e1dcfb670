"""Features of a dataset in one file of the cache, and batches of them.

A batch costs one read of its rows, which are in the system's memory after the first time. So no process has a copy of
the whole, except of the rows of its own training if they are few.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.features.npy_file import NpyFile, NpyFileError, open_npy
from protocols.images.batch_source import Rows, has_room
from protocols.images.device_crops import sent
from protocols.images.packed_images import Selection
from protocols.verified_files import FileRecord, changed, check_file, record_of, set_damaged_aside
from results.whole_files import ChangedFileError

FEATURES_FILE, _DESCRIPTION = "features.npy", "description.json"

MEMORY_BYTES = 512 * 2**20
"""Largest size in bytes of features that a training keeps in memory as float32; larger ones are read for each batch."""


@dataclass(frozen=True)
class PackedFeatures:
    """A file of features in the cache, one row per image.

    Only the fields are pickled. A worker process reads the same file, and checks first that it still holds the
    features that its task was made for.

    Attributes:
        path: An .npy file, float16 or float32 (n, c).
        record: Hash and stamp of the file.
    """

    path: Path
    record: FileRecord

    def check(self) -> tuple[str, ...]:
        """Return the stamp of the file; raise ChangedFileError unless it holds these features."""
        return (check_file(self.path, self.record),)

    @cached_property
    def _file(self) -> NpyFile:
        self.check()
        try:
            return open_npy(self.path)
        except NpyFileError as error:
            raise changed(self.path) from error

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return self._file.shape[0]

    @property
    def width(self) -> int:
        """Number of features c of a row."""
        return self._file.shape[1]

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Copy rows (k,) of the file; returns float32 (k, c)."""
        return np.asarray(self._file.take(rows), dtype=np.float32)


def kept_features(folder: Path) -> PackedFeatures | None:
    """Open a folder of features in the cache; None if there is none. A damaged one is set aside."""
    if not folder.exists():
        return None
    try:
        record: FileRecord = json.loads((folder / _DESCRIPTION).read_bytes())["file"]
        features = PackedFeatures(folder / FEATURES_FILE, record)
        features.check()
    except (OSError, ValueError, KeyError, TypeError, ChangedFileError):
        set_damaged_aside(folder, "the folder of features")
        return None
    return features


def describe_features(folder: Path, description: dict[str, object]) -> None:
    """Write the description of a folder whose file of features is complete, with the record of the file."""
    complete = {**description, "file": record_of(folder / FEATURES_FILE)}
    (folder / _DESCRIPTION).write_text(json.dumps(complete, indent=1) + "\n")


@dataclass(frozen=True)
class LabelledFeatures(Selection):
    """A selection of the rows of a file of features."""

    features: PackedFeatures
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def n_bytes(self) -> int:
        """Size of the rows as float32, in bytes."""
        return 4 * len(self.rows) * self.features.width

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Copy the features at positions (k,) of this selection; returns float32 (k, c)."""
        return self.features.take(self.rows[positions])


class FeatureSource:
    """Features of training images, float32 (batch, c) on the device. It has the interface of `BatchSource`."""

    def __init__(self, features: LabelledFeatures, device: torch.device) -> None:
        self._features, self._device = features, device
        self._kept = kept_rows(features, device)

    def training_batch(self, rows: Rows, generator: torch.Generator) -> Tensor:
        """Return the features, float32 (batch, c), of the images at positions (batch,)."""
        if self._kept is None:
            return sent(self._features.take(rows), self._device)
        return self._kept.index_select(0, sent(rows, self._device))

    def training_batches(self, rows: Iterable[Rows], generator: torch.Generator) -> Iterator[tuple[Rows, Tensor]]:
        """Yield the positions and the features of each batch; the arguments are those of `training_batch`."""
        for part in rows:
            yield part, self.training_batch(part, generator)


class EvaluationFeatures:
    """Features in their order, float32 (batch, c) on the device. It has the interface of `EvaluationCrops`."""

    def __init__(self, features: LabelledFeatures, device: torch.device, *, keep: bool = True) -> None:
        self._features, self._device = features, device
        self._kept = kept_rows(features, device) if keep else None

    def batches(self) -> Iterator[Tensor]:
        """Yield all features in their order: at once if they are kept, and else in parts."""
        if self._kept is not None:
            yield self._kept
            return
        part = max(1, MEMORY_BYTES // 8 // (4 * self._features.features.width))
        for first in range(0, len(self._features), part):
            rows = np.arange(first, min(first + part, len(self._features)))
            yield torch.from_numpy(self._features.take(rows)).to(self._device)


def kept_rows(features: LabelledFeatures, device: torch.device) -> Tensor | None:
    """Return all rows, float32 (n, c) on the device; None if they need more than `MEMORY_BYTES` or there is no room."""
    fits = features.n_bytes <= MEMORY_BYTES
    if not fits or (device.type == "cuda" and not has_room(device, features.n_bytes, MEMORY_BYTES)):
        return None
    return torch.from_numpy(features.take(np.arange(len(features)))).to(device)
