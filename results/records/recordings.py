"""Recordings: embeddings and proxies at some moments of a training, for figures that show how they change.

A recording lies beside the weights of its training. It is written once, during the training.
"""

import io
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from results.records.artifacts import Floats, Ints
from results.whole_files import write_whole


@dataclass(frozen=True)
class Snapshot:
    """Embeddings and proxies at one moment of a training. All vectors are normalised as for the evaluation.

    Attributes:
        epoch: Number of epochs done.
        problem: Number of the problem of CCP that this is the solution of, from 0; -1 at a given epoch.
        embeddings: (n, d), the embeddings of the recorded images.
        labels: (n,), their classes. Training classes are numbered from 0, as in `proxy_labels`.
        proxies: (p, d), the proxies of the recorded classes; empty for validation images and for losses without
            proxies.
        proxy_labels: (p,), the proxies' classes.
        next_proxies: (p, d), the first proxies of the next problem, with the same classes; empty if there is none.
        map_at_r: MAP@R of the recorded images among themselves, a fraction of 1. NaN at a given epoch, like the next
            two.
        covering_radius: Average covering radius of their classes.
        class_distance: Mean distance of two images of different classes.
    """

    epoch: int
    problem: int
    embeddings: Floats
    labels: Ints
    proxies: Floats
    proxy_labels: Ints
    next_proxies: Floats
    map_at_r: float = float("nan")
    covering_radius: float = float("nan")
    class_distance: float = float("nan")


@dataclass(frozen=True)
class Recording:
    """The snapshots of one training, in the order of its epochs."""

    snapshots: tuple[Snapshot, ...]

    def at_epoch(self, epoch: int) -> Snapshot | None:
        """Return the snapshot at a given epoch; None if there is none."""
        return next((shot for shot in self.snapshots if shot.problem < 0 and shot.epoch == epoch), None)

    @property
    def problems(self) -> tuple[Snapshot, ...]:
        """The solutions of CCP's problems, the first problem first."""
        return tuple(sorted((shot for shot in self.snapshots if shot.problem >= 0), key=lambda shot: shot.problem))

    def save(self, path: Path) -> None:
        """Write the snapshots to an .npz file in one step."""
        arrays: dict[str, Any] = {
            f"{number}.{field.name}": np.asarray(getattr(shot, field.name))
            for number, shot in enumerate(self.snapshots)
            for field in fields(Snapshot)
        }
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_whole(path, buffer.getbuffer())

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read the snapshots of a file that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            count = len({name.partition(".")[0] for name in arrays.files})
            return cls(tuple(_snapshot(arrays, number) for number in range(count)))


def _snapshot(arrays: np.lib.npyio.NpzFile, number: int) -> Snapshot:
    values: dict[str, Any] = {field.name: arrays[f"{number}.{field.name}"] for field in fields(Snapshot)}
    return Snapshot(**{name: value if value.ndim else value.item() for name, value in values.items()})


def recording_path(weights: Path) -> Path:
    """Return the path of a training's recording; the file lies beside the training's weights."""
    return weights.with_suffix(".recording.npz")
