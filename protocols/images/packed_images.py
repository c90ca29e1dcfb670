"""Decoded images of a dataset in one memory map. All processes share it, so no process has a copy."""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True)
class PackedImages:
    """uint8 images of different sizes, one after another in `folder`/pixels.bin.

    An image whose stored shape differs from its shape is enlarged when it is read.

    Only the folder's path is pickled; a worker process opens the same memory map.

    Attributes:
        folder: Folder of the pack.
    """

    folder: Path

    @cached_property
    def _layout(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Offsets, shapes and stored shapes of the images. Packs of older versions store the enlarged images."""
        with np.load(self.folder / "layout.npz") as layout:
            shapes = layout["shapes"]
            return layout["offsets"], shapes, layout.get("stored", shapes)

    @cached_property
    def _pixels(self) -> NDArray[np.uint8]:
        return np.memmap(self.folder / "pixels.bin", dtype=np.uint8, mode="r")

    def __len__(self) -> int:
        return len(self._layout[0])

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder}

    def image(self, index: int) -> NDArray[np.uint8]:
        """Return image `index` as uint8 (height, width, channels): a view of the memory map, or an enlarged copy."""
        offsets, shapes, stored = self._layout
        shape, start = stored[index], offsets[index]
        pixels = self._pixels[start : start + shape.prod()].reshape(shape)
        height, width, _ = shapes[index].tolist()
        if pixels.shape[:2] == (height, width):
            return pixels
        return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR))

    def shape_of(self, index: int) -> tuple[int, int, int]:
        """Return height, width and channels of image `index` without reading it."""
        height, width, channels = self._layout[1][index].tolist()
        return height, width, channels

    @property
    def channels(self) -> int:
        """Number of channels: 1 for grey images, 3 for RGB."""
        return int(self._layout[1][0, 2])

    @cached_property
    def description(self) -> dict[str, object]:
        """Description of the pack: `stamp` (identity), `skipped` (names of images left out) and `content` (hash)."""
        loaded: dict[str, object] = json.loads((self.folder / "description.json").read_text())
        return loaded


@dataclass(frozen=True)
class LabelledImages:
    """A selection of the images of a pack, with their classes. It gives no access to other images.

    Attributes:
        images: The pack.
        rows: Positions in the pack, int64 (n,).
        labels: Class ranks, int64 (n,).
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
        """Return image `index` of this selection as uint8 (height, width, channels).

        Raises:
            IndexError: The selection has no such image.
        """
        return self.images.image(self._row(index))

    def shape_of(self, index: int) -> tuple[int, int, int]:
        """Return height, width and channels of image `index` of this selection without reading it.

        Raises:
            IndexError: The selection has no such image.
        """
        return self.images.shape_of(self._row(index))

    def _row(self, index: int) -> int:
        if not 0 <= index < len(self.rows):
            raise IndexError(f"image {index} of {len(self.rows)}")
        return int(self.rows[index])

    @property
    def n_bytes(self) -> int:
        """Size of the decoded pixels in bytes."""
        return sum(math.prod(self.shape_of(index)) for index in range(len(self)))

    def of_classes(self, ranks: tuple[int, ...]) -> "LabelledImages":
        """Return the images whose class rank is in `ranks`."""
        return self.select(np.flatnonzero(np.isin(self.labels, np.asarray(ranks, dtype=np.int64))))

    def select(self, positions: NDArray[np.int64]) -> "LabelledImages":
        """Return the images at positions (k,) of this selection, in that order."""
        return LabelledImages(self.images, self.rows[positions], self.labels[positions])
