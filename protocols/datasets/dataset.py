"""A dataset in the form that protocols use: classes, labels, packed images, a fingerprint; the data of a training."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from protocols.datasets.listing import ImageListing, as_it_looks, check_listing, named, part_of, without_small_classes
from protocols.datasets.splits import SplitError, classes_of
from protocols.images.packed_images import LabelledImages, PackedImages
from protocols.images.packing import Progress, content_hash, equal_rows, pack_files
from protocols.images.samples import Samples
from results.spec.conditions import ImageSettings
from results.spec.data_choice import OWN_DATA, DataChoice, samples_word
from results.spec.training_spec import FoldSpec
from results.values import fingerprint_of
from results.wording import counted, verb


def oddities(
    listing: ImageListing, contents: Iterable[object], constant: Sequence[int], tested: Collection[int]
) -> str | None:
    """Count and name unusual samples, equal ones of several classes in training and in test first, and classes whose
    names look alike; None without any.

    Args:
        contents: A hash of the content of each sample, None or zeros where it is not known.
        constant: Positions of samples all of whose values are equal, such as a row of zeros.
        tested: Ranks of the test classes.
    """
    groups = equal_rows(contents)
    classes = [{int(label) for label in listing.labels[list(group)]} for group in groups]
    sides = [{label in tested for label in found} for found in classes]
    both = [group for group, found in zip(groups, sides, strict=True) if len(found) > 1]
    across = [group for group, found in zip(groups, classes, strict=True) if len(found) > 1]
    within = [group for group, found in zip(groups, classes, strict=True) if len(found) == 1]
    name = listing.names.__getitem__ if listing.names else "row {}".format
    pairs = [" = ".join(name(row) for row in group[:2]) for group in sorted(across, key=both.__contains__)[::-1]]
    parts, samples = [], samples_word(listing.name)
    if across:
        what = named("group", pairs, f"of {samples} that are equal but of several classes")
        parts.append(f"{what}, {len(both):,} of them in training and in test")
    if within:
        pairs = [" = ".join(name(row) for row in group[:2]) for group in within]
        parts.append(named("group", pairs, f"of equal {samples} within a class"))
    if constant:
        parts.append(named(samples[:-1], list(map(name, constant)), f"of one {'colour' if listing.names else 'value'}"))
    if listing.name in OWN_DATA and (alike := equal_rows(map(as_it_looks, listing.class_names))):
        pairs = [" = ".join(listing.class_names[rank] for rank in group[:2]) for group in alike]
        parts.append(named("group", pairs, "of classes whose names differ in capitals or script only"))
    return "; ".join(parts) or None


@dataclass(frozen=True, kw_only=True)
class Dataset(ImageListing):
    """A listing with its images, or with features in their place.

    Attributes:
        images: The n images with their class ranks, or their features.
        fingerprint: Hash of the content. It changes with every file, every class and every image that is left out.
        hashes: SHA-256 of the file of each image, or of each row of features, (n, 32) uint8; zeros where unknown.
        constant: Positions of the samples all of whose values are equal.
    """

    images: Samples
    fingerprint: str
    hashes: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 32), dtype=np.uint8))
    constant: tuple[int, ...] = ()

    def oddities(self, tested: Collection[int]) -> str | None:
        """Count and name unusual samples, as the function `oddities` does."""
        return oddities(self, map(bytes, self.hashes), self.constant, tested)

    @property
    def contents(self) -> pd.DataFrame:
        """Rank and name of the `class`, and the first digits of the hash, of each sample or of the image behind it."""
        names = [self.class_names[label] for label in self.labels]
        digests = [bytes(digest[:8]).hex() if digest.any() else "" for digest in self.hashes]
        return pd.DataFrame({"rank": self.labels, "class": names, "sha256": digests})


@dataclass(frozen=True)
class DataRequest:
    """A dataset and how to read it.

    Attributes:
        choice: Its name, the folder of its images, and what of it counts.
        images: Transforms of the images; `resize` is applied when the images are packed.
        cache: Folder of the packed images.
        progress: Called with the number of packed images and the number of all images.
    """

    choice: DataChoice
    images: ImageSettings
    cache: Path
    progress: Progress | None = None


def from_listing(listing: ImageListing, request: DataRequest) -> Dataset:
    """Pack the images of a listing and check that every class can be evaluated."""
    listing, _ = without_small_classes(listing, request.choice.min_images)
    check_listing(listing)
    # Resolved, so that two spellings of one folder give the same pack.
    identity = [listing.name, str(listing.root.resolve()), request.images.resize]
    images = pack_files(
        listing.root,
        listing.names,
        request.images.resize,
        request.cache / fingerprint_of(identity),
        skip_broken=request.choice.skip_broken_images,
        progress=request.progress,
        as_mlrc=reads_as_mlrc(listing.name),
    )
    return from_packing(listing, images, content_hash(images), request.choice.min_images)


def reads_as_mlrc(dataset: str) -> bool:
    """Return whether a dataset's images are decoded as in MLRC's code; a user's own come upright on white ground."""
    return dataset not in OWN_DATA


def from_packing(listing: ImageListing, images: PackedImages, content: str, min_images: int | None = None) -> Dataset:
    """Make a dataset of a listing whose images are packed; `content` is a hash of them."""
    skipped = [listing.names[row] for row in images.broken]
    rows = np.setdiff1d(np.arange(len(listing.names)), images.broken)
    phrases = [named("image", skipped, "that cannot be decoded")] if skipped else []
    listing, kept = without_small_classes(part_of(listing, rows, *phrases), min_images)
    check_listing(listing)
    rows = rows[kept]
    identity = [listing.class_names, listing.names, listing.labels.tolist(), content, skipped]
    if listing.is_query is not None:
        identity.append(listing.is_query.tolist())
    if listing.is_split_given:
        identity.append({"trainval_classes": listing.trainval_classes})
    return Dataset(
        **vars(listing),
        images=LabelledImages(rows, listing.labels, images),
        fingerprint=fingerprint_of(identity),
        hashes=images.index["hash"][rows],
        constant=tuple(np.flatnonzero(images.index["constant"][rows]).tolist()),
    )


def note_on_queries(listing: ImageListing, tested: Collection[int]) -> str | None:
    """Say how the samples of the tested classes are divided, and how many have no query; None without queries."""
    if listing.is_query is None:
        return None
    counts = np.isin(listing.labels, list(tested))
    queries, gallery = int(np.sum(listing.is_query & counts)), int(np.sum(~listing.is_query & counts))
    alone = len(np.setdiff1d(listing.labels[counts], listing.labels[listing.is_query]))
    more = f", which has {counted(alone, 'test class')} without a query" if alone else ""
    return (
        f"{counted(queries, 'query')} {verb(queries, 'are')} searched for among {gallery:,} others in the gallery{more}"
    )


@dataclass(frozen=True)
class FoldData:
    """Images of one fold's training and validation classes, or their features, and no others.

    Training data and test data have different types. `train_fold` takes a `FoldData`. The images of the test classes
    are in a `TestData` of `protocols.evaluation`, which search and training do not import; a test checks this.
    """

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
