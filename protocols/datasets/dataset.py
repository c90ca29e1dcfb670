"""A dataset in the form that protocols use: classes, labels, packed images and a fingerprint."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.images.packed_images import LabelledImages
from protocols.images.packing import Packing, pack_files
from protocols.progress import Progress
from protocols.samples import Samples
from protocols.splits import MIN_CLASSES
from results.spec.training_spec import ImageSettings
from results.values import fingerprint_of


class DataError(Exception):
    """A dataset cannot be used. The message names the file or the class, and the remedy."""


@dataclass(frozen=True)
class ImageListing:
    """The images of a dataset, before any image is read.

    Attributes:
        dataset: Name of the dataset.
        root: Folder of the images.
        class_names: Names of the classes, in the order of the class ids.
        names: Paths of the n images below `root`.
        labels: Class rank of each image, int64 (n,).

    The other fields are as in `Dataset`.
    """

    dataset: str
    root: Path
    class_names: tuple[str, ...]
    names: tuple[str, ...]
    labels: NDArray[np.int64]
    trainval_classes: int | None = None
    is_query: NDArray[np.bool_] | None = None
    is_split_given: bool = False


@dataclass(frozen=True)
class Dataset:
    """Images, or features in their place, with their classes.

    Attributes:
        name: Name of the dataset.
        class_names: Names of the classes, in the order of the class ranks.
        images: The n images with their class ranks, or their features.
        fingerprint: Hash of the content. It changes with every file, every class and every image that is left out.
        skipped: Names of the images that are left out because they cannot be decoded.
        trainval_classes: Number of classes that the conventional split trains on; they are the first ones. None if the
            dataset has no conventional split.
        is_query: (n,), whether an image is a query or in the gallery, if the publisher separates them; else None. It
            matters only for test classes.
        names: Names of the n images: paths below their folder. Empty if they are not known.
        pictures: The images that the features were computed of, to show them; None if `images` are images.
        is_split_given: Whether the user's split file says which classes are for the test. Every protocol then uses it.
    """

    name: str
    class_names: tuple[str, ...]
    images: Samples
    fingerprint: str
    skipped: tuple[str, ...] = ()
    trainval_classes: int | None = None
    is_query: NDArray[np.bool_] | None = None
    names: tuple[str, ...] = ()
    pictures: LabelledImages | None = None
    is_split_given: bool = False

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def are_test_classes_given(self) -> bool:
        """Whether only certain classes can be tested: those of the publisher's queries, or of the user's split."""
        return self.is_split_given or self.is_query is not None


@dataclass(frozen=True)
class DataRequest:
    """The location of a dataset and how to read it.

    Attributes:
        name: Name of the dataset.
        images: Transforms of the images; `resize` is applied when the images are packed.
        cache: Folder of the packed images.
        root: Folder of the images; None for embedded datasets.
        subset: Whether the folder holds only a part of the published dataset. The counts are then not checked.
        skip_broken: Whether to leave out images that cannot be decoded.
        progress: Called with the number of packed images and the number of all images.
        split: File with the user's split of the classes; None takes `split.csv` beside the data, if there is one.
    """

    name: str
    images: ImageSettings
    cache: Path
    root: Path | None = None
    subset: bool = False
    skip_broken: bool = False
    progress: Progress | None = None
    split: Path | None = None


def from_listing(listing: ImageListing, request: DataRequest) -> Dataset:
    """Pack the images of a listing and check that every class can be evaluated."""
    for name in (str(listing.root.resolve()), *listing.class_names, *listing.names):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{listing.dataset}: the name {name!r} is not UTF-8; rename the file or folder") from None
    check_listing(listing)
    # Resolved, so that two spellings of one folder give the same pack.
    identity = [listing.dataset, str(listing.root.resolve()), request.images.resize]
    packing = pack_files(
        listing.root,
        listing.names,
        request.images.resize,
        request.cache / fingerprint_of(identity),
        skip_broken=request.skip_broken,
        progress=request.progress,
    )
    return _packed(listing, packing)


def from_packing(
    name: str, class_names: tuple[str, ...], names: Sequence[str], labels: NDArray[np.int64], packing: Packing
) -> Dataset:
    """Make a dataset of packed images, with their class ranks (n,); the first half of the classes is for training."""
    conventional = len(class_names) - len(class_names) // 2
    return _packed(ImageListing(name, Path(), class_names, tuple(names), labels, conventional), packing)


def _packed(listing: ImageListing, packing: Packing) -> Dataset:
    skipped = set(packing.skipped)
    rows = np.asarray([row for row, image in enumerate(listing.names) if image not in skipped], dtype=np.int64)
    labels = listing.labels[rows]
    is_query = None if listing.is_query is None else listing.is_query[rows]
    names = [listing.names[row] for row in rows]
    check_listing(replace(listing, names=tuple(names), labels=labels, is_query=is_query))
    identity = [listing.class_names, names, labels.tolist(), packing.content_hash, packing.skipped]
    if is_query is not None:
        identity.append(is_query.tolist())
    if listing.is_split_given:
        identity.append({"trainval_classes": listing.trainval_classes})
    images = LabelledImages(packing.images, rows, labels)
    return Dataset(
        listing.dataset,
        listing.class_names,
        images,
        fingerprint_of(identity),
        packing.skipped,
        listing.trainval_classes,
        is_query,
        tuple(names),
        is_split_given=listing.is_split_given,
    )


def check_listing(listing: ImageListing, sample: str = "image") -> None:
    """Raise DataError unless there are enough classes and every class has enough images.

    If the publisher separates queries and gallery, a test class needs one image of each kind, and a training class
    needs one image: the validation skips queries without another image of their class. Otherwise every class needs two
    images.
    """
    name, n_classes = listing.dataset, len(listing.class_names)
    if n_classes < MIN_CLASSES:
        raise DataError(
            f"{name}: {n_classes} classes found, the protocol needs at least {MIN_CLASSES}; add classes, or "
            "check that --data names the folder that holds them"
        )
    counts = np.bincount(listing.labels, minlength=n_classes).tolist()
    for rank, class_name in enumerate(listing.class_names):
        if listing.is_query is None and counts[rank] < 2:
            images = f"only one {sample}" if counts[rank] else f"no {sample}"
            raise DataError(f"{name}: class {class_name!r} has {images}; give it at least two, or remove the class")
    if listing.is_query is None:
        return
    queries = np.bincount(listing.labels[listing.is_query], minlength=n_classes).tolist()
    for rank, class_name in enumerate(listing.class_names):
        missing = None
        if rank < (listing.trainval_classes or 0):
            missing = None if counts[rank] else sample
        elif queries[rank] in (0, counts[rank]):
            missing = f"gallery {sample}" if queries[rank] else "query"
        if missing:
            raise DataError(f"{name}: class {class_name!r} has no {missing}; complete it, or remove the class")
