"""Decoded images of a dataset in one memory map. All processes share it, so no process has a copy."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PIXELS, INDEX = "pixels.bin", "index.bin"

INDEX_DTYPE = np.dtype(
    [
        *(("shape", np.int64, (3,)), ("stored", np.int64, (3,))),
        *(("state", np.uint8), ("constant", np.bool_), ("hash", np.uint8, (32,))),
    ]
)
"""One image of a pack: height, width and channels, those of the stored pixels, how it was decoded, whether it has a
single colour, and its file's hash. A broken file has the shape 0 x 0.
"""
AS_IT_IS, BROKEN, AS_SEEN = 0, 1, 2
"""How an image was decoded: to Pillow's RGB, not at all, or to an upright picture on white ground."""


@dataclass(frozen=True)
class PackedImages:
    """uint8 images of different sizes, one after another in `folder`/pixels.bin.

    An image whose stored shape differs from its shape is enlarged when it is read. Only the folder is pickled: a worker
    process opens the same memory map.

    Attributes:
        folder: Folder of the pack, which is never written again.
    """

    folder: Path

    @cached_property
    def index(self) -> NDArray[np.void]:
        """One entry of `INDEX_DTYPE` for each image."""
        return np.fromfile(self.folder / INDEX, dtype=INDEX_DTYPE)

    @property
    def broken(self) -> NDArray[np.int64]:
        """Positions of the files that cannot be decoded."""
        return np.flatnonzero(self.index["state"] == BROKEN)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        sizes = self.index["stored"].prod(axis=1)
        offsets: NDArray[np.int64] = np.cumsum(sizes) - sizes
        return offsets

    @cached_property
    def _pixels(self) -> NDArray[np.uint8]:
        # A plain array on the same memory: every slice of a `memmap` costs several times as much.
        return np.memmap(self.folder / PIXELS, dtype=np.uint8, mode="r").view(np.ndarray)

    def __len__(self) -> int:
        return len(self.index)

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def image(self, index: int) -> NDArray[np.uint8]:
        """Return image `index` as uint8 (height, width, channels): a view of the memory map, or an enlarged copy."""
        entry, start = self.index[index], self._offsets[index]
        pixels = self._pixels[start : start + entry["stored"].prod()].reshape(entry["stored"])
        height, width, _ = entry["shape"].tolist()
        if pixels.shape[:2] == (height, width):
            return pixels
        return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR))

    def shapes_of(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return height, width and channels of several images (n, 3) without reading them."""
        shapes: NDArray[np.int64] = self.index["shape"][indices]
        return shapes

    @property
    def channels(self) -> int:
        """Number of channels: 1 for grey images, 3 for RGB."""
        return int(self.index["shape"][0, 2])


@dataclass(frozen=True)
class Selection:
    """Some of a dataset's samples with their classes. It gives no access to others.

    Attributes:
        rows: Positions in the pack of images or in the file of features, int64 (n,).
        labels: Class ranks, int64 (n,).
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def of_classes(self, ranks: tuple[int, ...]) -> Self:
        """Return the samples whose class rank is in `ranks`."""
        return self.select(np.flatnonzero(np.isin(self.labels, np.asarray(ranks, dtype=np.int64))))

    def select(self, positions: NDArray[np.int64]) -> Self:
        """Return the samples at positions (k,) of this selection, in that order."""
        return replace(self, rows=self.rows[positions], labels=self.labels[positions])


@dataclass(frozen=True)
class LabelledImages(Selection):
    """A selection of the images of a pack."""

    images: PackedImages

    def image(self, index: int) -> NDArray[np.uint8]:
        """Return image `index` of this selection as uint8 (height, width, channels)."""
        return self.images.image(int(self.rows[index]))

    def shapes_of(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return height, width and channels of several images of this selection (n, 3) without reading them."""
        return self.images.shapes_of(self.rows[indices])

    @property
    def n_bytes(self) -> int:
        """Size of the decoded pixels in bytes."""
        return int(self.shapes_of(np.arange(len(self))).prod(axis=1).sum())
