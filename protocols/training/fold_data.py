"""The data of one training: images of training and validation classes, without test classes.

Training data and test data have different types. `train_fold` takes a `FoldData`. The images of the test classes are in
a `TestData` of `protocols.evaluation`. Search and training do not import that package; a test checks this.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import SplitError, classes_of
from protocols.images.samples import Samples
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class FoldData:
    """Images of one fold's training and validation classes, or their features, and no others."""

    train: Samples
    validation: Samples

    def check(self, spec: FoldSpec) -> None:
        """Check that the images belong to the classes of a specification."""
        train, validation = set(self.train.labels.tolist()), set(self.validation.labels.tolist())
        if train & validation:
            raise SplitError(
                f"fold {spec.fold}: class {min(train & validation)} is used for training and for validation"
            )
        classes = classes_of(spec)
        if train != set(classes.train) or validation != set(classes.validation):
            raise SplitError(f"fold {spec.fold}: the classes of the images differ from those in the specification")

    @property
    def train_targets(self) -> NDArray[np.int64]:
        """Class of every training image as 0..C-1 in rank order, (n,)."""
        return np.searchsorted(np.unique(self.train.labels), self.train.labels).astype(np.int64)


def fold_data(dataset: Dataset, spec: FoldSpec) -> FoldData:
    """Select the images of a training's classes."""
    classes = classes_of(spec)
    return FoldData(dataset.images.of_classes(classes.train), dataset.images.of_classes(classes.validation))
