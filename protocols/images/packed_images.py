"""Decoded images of a dataset in one memory map. All processes share it, so no process has a copy."""

import json
import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from protocols.verified_files import changed, check_file
from results.values import fingerprint_of

PIXELS, LAYOUT, DESCRIPTION = "pixels.bin", "layout.npz", "description.json"


@dataclass(frozen=True)
class PackedImages:
    """uint8 images of different sizes, one after another in `folder`/pixels.bin.

    An image whose stored shape differs from its shape is enlarged when it is read.

    Only the fields are pickled. A worker process opens the same memory map, and checks first that the
    folder still holds the pack that its task was made for.

    Attributes:
        folder: Folder of the pack.
        identity: Hash of what the pack holds, as in its description.
    """

    folder: Path
    identity: str

    @cached_property
    def _layout(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        self._check(LAYOUT)
        with np.load(self.folder / LAYOUT) as layout:
            return layout["offsets"], layout["shapes"], layout["stored"]

    @cached_property
    def _pixels(self) -> NDArray[np.uint8]:
        self._check(PIXELS)
        # A plain array on the same memory: every slice of a `memmap` costs several times as much.
        return np.memmap(self.folder / PIXELS, dtype=np.uint8, mode="r").view(np.ndarray)

    def _check(self, name: str) -> str:
        return check_file(self.folder / name, self.description["files"][name])

    def check(self) -> tuple[str, ...]:
        """Return the stamps of the files; raise ChangedFileError unless the folder holds this pack."""
        return tuple(self._check(name) for name in (LAYOUT, PIXELS))

    def __len__(self) -> int:
        return len(self._layout[0])

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def image(self, index: int) -> NDArray[np.uint8]:
        """Return image `index` as uint8 (height, width, channels): a view of the memory map, or an enlarged copy."""
        offsets, shapes, stored = self._layout
        shape, start = stored[index], offsets[index]
        pixels = self._pixels[start : start + shape.prod()].reshape(shape)
        height, width, _ = shapes[index].tolist()
        if pixels.shape[:2] == (height, width):
            return pixels
        return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR))

    def shapes_of(self, indices: NDArray[np.int64]) -> list[tuple[int, int, int]]:
        """Return height, width and channels of several images without reading them."""
        return [(height, width, channels) for height, width, channels in self._layout[1][indices].tolist()]

    @property
    def channels(self) -> int:
        """Number of channels: 1 for grey images, 3 for RGB."""
        return int(self._layout[1][0, 2])

    @cached_property
    def description(self) -> dict[str, Any]:
        """Description of the pack.

        `identity` is the hash of what it holds, `skipped` has the names of images that are left out, `content` is the
        hash of the images, `equal` has the groups of files with equal content, if the images came from files, and
        `files` has a `FileRecord` of each file.
        """
        path = self.folder / DESCRIPTION
        try:
            loaded: dict[str, Any] = json.loads(path.read_bytes())
            sound = loaded["identity"] == self.identity and loaded.pop("checksum") == fingerprint_of(loaded)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise changed(path) from error
        if not sound:
            raise changed(path)
        return loaded


class Selection:
    """Some of a dataset's samples with their classes. It gives no access to others.

    Attributes:
        rows: Positions in the pack of images or in the file of features, int64 (n,).
        labels: Class ranks, int64 (n,).
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.labels):
            raise ValueError(f"{len(self.rows)} rows but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.rows)

    def of_classes(self, ranks: tuple[int, ...]) -> Self:
        """Return the samples whose class rank is in `ranks`."""
        return self.select(np.flatnonzero(np.isin(self.labels, np.asarray(ranks, dtype=np.int64))))

    def select(self, positions: NDArray[np.int64]) -> Self:
        """Return the samples at positions (k,) of this selection, in that order."""
        changed_rows: Any = {"rows": self.rows[positions], "labels": self.labels[positions]}
        return replace(self, **changed_rows)  # type: ignore[type-var]


@dataclass(frozen=True)
class LabelledImages(Selection):
    """A selection of the images of a pack."""

    images: PackedImages
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def image(self, index: int) -> NDArray[np.uint8]:
        """Return image `index` of this selection as uint8 (height, width, channels)."""
        self._check(np.asarray([index]))
        return self.images.image(int(self.rows[index]))

    def shapes_of(self, indices: NDArray[np.int64]) -> list[tuple[int, int, int]]:
        """Return height, width and channels of several images of this selection without reading them."""
        self._check(indices)
        return self.images.shapes_of(self.rows[indices])

    def _check(self, indices: NDArray[np.int64]) -> None:
        missing = indices[(indices < 0) | (indices >= len(self.rows))]
        if len(missing):
            raise IndexError(f"image {missing[0]} of {len(self.rows)}")

    @property
    def n_bytes(self) -> int:
        """Size of the decoded pixels in bytes."""
        return sum(math.prod(shape) for shape in self.shapes_of(np.arange(len(self))))
