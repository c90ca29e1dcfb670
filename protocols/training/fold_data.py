"""What a training may see and what only an evaluation may see are two types.

`FoldData` holds the images of one fold's training and validation classes, and `train_fold` takes it. `TestData` holds
those of the test classes. It is in `protocols.evaluation`, which search and training do not import; a test checks it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import Dataset
from protocols.images.packed_images import LabelledImages
from protocols.splits import FoldClasses, SplitError, from_ranges
from results.training_spec import FoldSpec


@dataclass(frozen=True)
class FoldData:
    """Images of one fold's training and validation classes, and no others."""

    train: LabelledImages
    validation: LabelledImages

    def check(self, spec: FoldSpec) -> None:
        """Raises SplitError unless the images are those of the spec's classes, and training and validation disjoint."""
        train, validation = set(self.train.labels.tolist()), set(self.validation.labels.tolist())
        if train & validation:
            raise SplitError(f"fold {spec.fold}: class {min(train & validation)} is trained and validated on")
        if train != set(from_ranges(spec.train_classes)) or validation != set(from_ranges(spec.validation_classes)):
            raise SplitError(f"fold {spec.fold}: the images are not those of the classes in its specification")

    @property
    def train_targets(self) -> NDArray[np.int64]:
        """Training labels as 0..C-1, in rank order."""
        return np.searchsorted(np.unique(self.train.labels), self.train.labels).astype(np.int64)


def fold_data(dataset: Dataset, classes: FoldClasses) -> FoldData:
    """The images of a fold's classes."""
    return FoldData(dataset.images.of_classes(classes.train), dataset.images.of_classes(classes.validation))
