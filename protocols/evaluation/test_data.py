"""The images of the test classes, which only the evaluation of reproductions may see."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import Dataset
from protocols.images.packed_images import LabelledImages
from protocols.splits import ClassSplit, SplitError, from_ranges
from results.training_spec import FoldSpec


@dataclass(frozen=True)
class TestData:
    """Images of the test classes.

    is_query: for each image whether it is a query; the others are the gallery that queries are compared with. None
    compares every image with all others.
    """

    images: LabelledImages
    is_query: NDArray[np.bool_] | None = None

    def check_unseen(self, spec: FoldSpec) -> None:
        """Raises SplitError if a model of this specification is trained or selected on a test class."""
        seen = set(from_ranges(spec.train_classes)) | set(from_ranges(spec.validation_classes))
        both = seen & set(self.images.labels.tolist())
        if both:
            raise SplitError(f"fold {spec.fold}: test class {min(both)} was trained or validated on")


def test_data(dataset: Dataset, split: ClassSplit) -> TestData:
    """The images of the test classes; for reproductions only."""
    images = dataset.images.of_classes(split.test)
    is_query = None if dataset.is_query is None else dataset.is_query[np.isin(dataset.images.labels, split.test)]
    return TestData(images, is_query)
