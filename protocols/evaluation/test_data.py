"""The images of the test classes, which only the evaluation of reproductions may see."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import ClassSplit, SplitError, classes_of, trainval_of
from protocols.images.packed_images import LabelledImages
from protocols.images.samples import Samples
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class TestData:
    """Images of the test classes, or their features.

    Attributes:
        images: The images or their features, with their labels.
        is_query: For each image whether it is a query, (n,); the others are the gallery. With None every image is a
            query, and it is compared with all others.
        pictures: The images that the features were computed of, in the same order, to show them; else None.
    """

    images: Samples
    is_query: NDArray[np.bool_] | None = None
    pictures: LabelledImages | None = None

    def check_unseen(self, spec: FoldSpec) -> None:
        """Check that a training uses no test class."""
        overlap = used_classes(spec) & set(self.images.labels.tolist())
        if overlap:
            raise SplitError(f"fold {spec.fold}: test class {min(overlap)} was used for training or validation")


def used_classes(spec: FoldSpec) -> set[int]:
    """Return the ranks of the classes that a model was trained or selected on."""
    return set(trainval_of(classes_of(spec)))


def test_data(dataset: Dataset, split: ClassSplit) -> TestData:
    """Select the images of the test classes, for the test of reproductions."""
    images = dataset.images.of_classes(split.test)
    is_query = None if dataset.is_query is None else dataset.is_query[np.isin(dataset.images.labels, split.test)]
    pictures = None if dataset.pictures is None else dataset.pictures.of_classes(split.test)
    return TestData(images, is_query, pictures)
