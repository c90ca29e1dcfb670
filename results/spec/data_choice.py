"""The dataset of an experiment."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from results.values import FREE, UNNAMED, Record

FEATURES = "features"
"""Name of the dataset that is a file of features, without images and without a trunk."""

EMBEDDED = frozenset({"glyphs"})
"""Names of the datasets that need no folder."""

FOLDER = "folder"
"""Name of the dataset that is a folder of the user's images."""

OWN_DATA = (FOLDER, FEATURES)
"""Names of the datasets that a user brings, which nobody published."""


def samples_word(dataset: str) -> str:
    """Return what a dataset consists of, for people: rows, if it is a file of features, else images."""
    return "rows" if dataset == FEATURES else "images"


class DrawnSplit(Record):
    """Halves of the classes that a seed draws at random, for class names whose order means something."""

    seed: int = Field(ge=0)


class DataChoice(Record):
    """The dataset of an experiment.

    Attributes:
        root: Folder of its images, usually given with --data; None for an embedded dataset.
        subset: Whether the folder holds only a part of the published dataset.
        skip_broken_images: Whether to leave out images that cannot be decoded.
        split: File with the classes, or the images, for training and for the test; None takes `split.csv` in the
            folder, if there is one. Only for images and features of one's own.
        min_images: Smallest number of images of a class; smaller classes are left out. None leaves none out. Only for
            images of one's own.
    """

    name: str
    root: Annotated[Path | None, FREE, UNNAMED] = None
    subset: Annotated[bool, FREE] = False
    skip_broken_images: Annotated[bool, FREE] = False
    split: Annotated[Path | None, UNNAMED] = None
    min_images: Annotated[int | None, FREE] = Field(default=None, ge=2)

    @model_validator(mode="after")
    def _is_for_users_data(self) -> "DataChoice":
        if self.split is not None and self.name not in OWN_DATA:
            raise ValueError(f"dataset {self.name} has its publisher's classes; remove the key split of dataset")
        if self.min_images is not None and self.name != FOLDER:
            raise ValueError(f"dataset {self.name} keeps all its classes; remove the key min_images of dataset")
        return self
