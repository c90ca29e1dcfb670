"""Decoded images of a dataset in one memory map, shared by all processes and never copied per worker."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PackedImages:
    """uint8 images of differing sizes behind one another in `folder`/pixels.bin.

    Pickles as its folder's path: a worker process opens the same memory map.
    """

    folder: Path

    @cached_property
    def _layout(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        with np.load(self.folder / "layout.npz") as layout:
            return layout["offsets"], layout["shapes"]

    @cached_property
    def _pixels(self) -> NDArray[np.uint8]:
        return np.memmap(self.folder / "pixels.bin", dtype=np.uint8, mode="r")

    def __len__(self) -> int:
        return len(self._layout[0])

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder}

    def image(self, index: int) -> NDArray[np.uint8]:
        """Image `index` as (height, width, channels), a view into the map."""
        offsets, shapes = self._layout
        height, width, channels = shapes[index]
        start = offsets[index]
        return self._pixels[start : start + height * width * channels].reshape(height, width, channels)

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for RGB."""
        return int(self._layout[1][0, 2])

    @cached_property
    def description(self) -> dict[str, object]:
        """What `packing` wrote about this pack: data fingerprint, images left out, checksum."""
        loaded: dict[str, object] = json.loads((self.folder / "description.json").read_text())
        return loaded


@dataclass(frozen=True)
class LabelledImages:
    """Some images of a pack and their classes; gives access to no other image.

    rows: positions in the pack. labels: class ranks, int64, one per row.
    """

    images: PackedImages
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.labels):
            raise ValueError(f"{len(self.rows)} rows but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.rows)

    def image(self, index: int) -> NDArray[np.uint8]:
        """Image `index` of this selection as (height, width, channels)."""
        if not 0 <= index < len(self.rows):
            raise IndexError(f"image {index} of {len(self.rows)}")
        return self.images.image(int(self.rows[index]))

    @property
    def n_bytes(self) -> int:
        """Size of the decoded pixels."""
        return sum(self.image(index).size for index in range(len(self)))

    def of_classes(self, ranks: tuple[int, ...]) -> "LabelledImages":
        """The images whose class is among `ranks`."""
        keep = np.isin(self.labels, np.asarray(ranks, dtype=np.int64))
        return LabelledImages(self.images, self.rows[keep], self.labels[keep])
