"""A dataset with noise instead of images, to plan an experiment before the dataset is downloaded."""

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
    """Noise images of one size. Cropping and embedding them takes as long as for real images.

    Attributes:
        shape: Height, width and channels of every image.
    """

    count: int = 0
    shape: tuple[int, int, int] = (256, 341, 3)

    def __len__(self) -> int:
        return self.count

    @property
    def channels(self) -> int:
        """Number of channels of every image."""
        return self.shape[2]

    def image(self, index: int) -> NDArray[np.uint8]:
        """Return the same noise for every index."""
        return self._noise

    def shapes_of(self, indices: NDArray[np.int64]) -> list[tuple[int, int, int]]:
        """Return the one shape of all images for every index."""
        return [self.shape] * len(indices)

    @cached_property
    def _noise(self) -> NDArray[np.uint8]:
        return np.random.default_rng(0).integers(0, 256, self.shape, dtype=np.uint8)


def stand_in(name: str, counts: Counts, shorter_side: int) -> Dataset:
    """Make a dataset of noise with the published counts. Images are spread evenly over the classes.

    Its fingerprint is `stand-in`, so that it cannot be taken for real data.
    """
    test_classes, test_images = counts.classes - counts.trainval_classes, counts.images - counts.trainval_images
    trainval = np.sort(np.arange(counts.trainval_images, dtype=np.int64) % counts.trainval_classes)
    test = np.sort(np.arange(test_images, dtype=np.int64) % test_classes) + counts.trainval_classes
    # Most photographs are 4:3. The longer side decides only how many pixels a crop reads.
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
        is_split_given=counts.is_split_given,
    )
