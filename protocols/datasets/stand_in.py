"""A dataset's outline without its images: enough to plan an experiment before anything is downloaded."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import Dataset
from protocols.datasets.publication import Counts
from protocols.images.packed_images import LabelledImages, PackedImages


@dataclass(frozen=True)
class NoiseImages(PackedImages):
    """Noise of one size in the place of every image; what they cost to crop and to embed is what images cost."""

    count: int = 0
    shape: tuple[int, int, int] = (256, 341, 3)

    def __len__(self) -> int:
        return self.count

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder, "count": self.count, "shape": self.shape}

    @property
    def channels(self) -> int:
        """Always RGB."""
        return self.shape[2]

    def image(self, index: int) -> NDArray[np.uint8]:
        """The same noise for every index."""
        return self._noise

    @cached_property
    def _noise(self) -> NDArray[np.uint8]:
        return np.random.default_rng(0).integers(0, 256, self.shape, dtype=np.uint8)


def stand_in(name: str, counts: Counts, shorter_side: int) -> Dataset:
    """A dataset with the published counts, spread evenly; its fingerprint says that it is nobody's data."""
    test_classes, test_images = counts.classes - counts.trainval_classes, counts.images - counts.trainval_images
    trainval = np.sort(np.arange(counts.trainval_images, dtype=np.int64) % counts.trainval_classes)
    test = np.sort(np.arange(test_images, dtype=np.int64) % test_classes) + counts.trainval_classes
    # Photographs are mostly 4:3; the longer side only decides how much a crop reads.
    images = NoiseImages(Path("."), counts.images, (shorter_side, shorter_side * 4 // 3, 3))
    rows = np.arange(counts.images, dtype=np.int64)
    is_query = None if counts.queries is None else rows < counts.trainval_images + counts.queries
    return Dataset(
        name,
        tuple(str(rank) for rank in range(counts.classes)),
        LabelledImages(images, rows, np.concatenate([trainval, test])),
        "stand-in",
        trainval_classes=counts.trainval_classes,
        is_query=is_query,
    )
