"""A dataset's outline without its images: enough to plan an experiment before anything is downloaded."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import Dataset
from protocols.images.packed import LabelledImages, PackedImages


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


def stand_in(name: str, n_classes: int, n_images: int, trainval_classes: int | None, shorter_side: int) -> Dataset:
    """`n_images` spread evenly over `n_classes`; its fingerprint says that it is nobody's data."""
    labels = np.sort(np.arange(n_images, dtype=np.int64) % n_classes)
    # Photographs are mostly 4:3; the longer side only decides how much a crop reads.
    images = NoiseImages(Path("."), n_images, (shorter_side, shorter_side * 4 // 3, 3))
    rows = np.arange(n_images, dtype=np.int64)
    class_names = tuple(str(rank) for rank in range(n_classes))
    return Dataset(
        name, class_names, LabelledImages(images, rows, labels), "stand-in", trainval_classes=trainval_classes
    )
