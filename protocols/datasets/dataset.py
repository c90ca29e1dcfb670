"""A dataset ready for a protocol: classes, labels, packed images and a fingerprint."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.images.packed_images import LabelledImages
from protocols.images.packing import Packing, pack_files
from protocols.progress import Progress
from protocols.splits import MIN_CLASSES
from results.training_spec import ImageSettings
from results.values import fingerprint_of


class DataError(Exception):
    """A dataset cannot be used; the message names the file or class and what to do."""


@dataclass(frozen=True)
class ImageListing:
    """Which images a dataset has, before any is read.

    class_names: in the order of the class ids. names: paths below `root`. labels: class rank of each, int64.
    trainval_classes, is_query: as in `Dataset`.
    """

    dataset: str
    root: Path
    class_names: tuple[str, ...]
    names: tuple[str, ...]
    labels: NDArray[np.int64]
    trainval_classes: int | None = None
    is_query: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Dataset:
    """Images with their classes; `fingerprint` changes with any file, class or image left out.

    trainval_classes: how many of the first classes the dataset's conventional split trains on; None where there is no
    convention. is_query: of each image, where the publisher names queries and gallery (meaningful for test classes).
    """

    name: str
    class_names: tuple[str, ...]
    images: LabelledImages
    fingerprint: str
    skipped: tuple[str, ...] = ()
    trainval_classes: int | None = None
    is_query: NDArray[np.bool_] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


@dataclass(frozen=True)
class DataRequest:
    """Where a dataset lies and how it is to be read, as an experiment or the command line says it.

    root: folder of the images; None for embedded datasets. subset: the folder holds a part of the published dataset,
    so its counts are not checked. cache: folder of the packed images.
    """

    name: str
    images: ImageSettings
    cache: Path
    root: Path | None = None
    subset: bool = False
    skip_broken: bool = False
    progress: Progress | None = None


Opener = Callable[[DataRequest], Dataset]


def from_listing(listing: ImageListing, request: DataRequest) -> Dataset:
    """Packs the images of a listing and checks that every class can be evaluated."""
    check_listing(listing)
    # The same folder by another spelling is the same pack.
    place = [listing.dataset, str(listing.root.resolve()), request.images.resize]
    packing = pack_files(
        listing.root,
        listing.names,
        request.images.resize,
        request.cache / fingerprint_of(place),
        skip_broken=request.skip_broken,
        progress=request.progress,
    )
    return _packed(listing, packing)


def from_packing(
    name: str, class_names: tuple[str, ...], names: Sequence[str], labels: NDArray[np.int64], packing: Packing
) -> Dataset:
    """A dataset of the packed images that were not left out; the first half of its classes is for training."""
    conventional = len(class_names) - len(class_names) // 2
    return _packed(ImageListing(name, Path(), class_names, tuple(names), labels, conventional), packing)


def _packed(listing: ImageListing, packing: Packing) -> Dataset:
    left_out = set(packing.skipped)
    rows = np.asarray([row for row, image in enumerate(listing.names) if image not in left_out], dtype=np.int64)
    labels = listing.labels[rows]
    is_query = None if listing.is_query is None else listing.is_query[rows]
    kept = [listing.names[row] for row in rows]
    check_listing(replace(listing, names=tuple(kept), labels=labels, is_query=is_query))
    identity = [listing.class_names, kept, labels.tolist(), packing.content_hash, packing.skipped]
    if is_query is not None:
        identity.append(is_query.tolist())
    images = LabelledImages(packing.images, rows, labels)
    return Dataset(
        listing.dataset,
        listing.class_names,
        images,
        fingerprint_of(identity),
        packing.skipped,
        listing.trainval_classes,
        is_query,
    )


def check_listing(listing: ImageListing) -> None:
    """Raises DataError for too few classes or a class that no query can be scored on.

    Where queries and gallery are told apart, a test class needs one of each, and a class for training needs an image:
    the publisher's training items are taken as they are, and one with a single image is no query of a validation.
    """
    if listing.is_query is None:
        return check_classes(listing.dataset, listing.class_names, listing.labels)
    _check_number(listing.dataset, listing.class_names)
    n_classes, trainval = len(listing.class_names), listing.trainval_classes or 0
    queries = np.bincount(listing.labels[listing.is_query], minlength=n_classes)
    gallery = np.bincount(listing.labels[~listing.is_query], minlength=n_classes)
    for rank, name in enumerate(listing.class_names):
        lacks = None
        if rank < trainval:
            lacks = "image" if queries[rank] + gallery[rank] == 0 else None
        elif not (queries[rank] and gallery[rank]):
            lacks = "gallery image" if queries[rank] else "query"
        if lacks:
            raise DataError(f"{listing.dataset}: class {name!r} has no {lacks}; complete it, or remove the class")
    return None


def check_classes(name: str, class_names: Sequence[str], labels: NDArray[np.int64]) -> None:
    """Raises DataError for too few classes or a class that has no two images."""
    _check_number(name, class_names)
    counts = Counter(labels.tolist())
    for rank, class_name in enumerate(class_names):
        if counts[rank] < 2:
            few = "no image" if counts[rank] == 0 else "only one image"
            raise DataError(f"{name}: class {class_name!r} has {few}; give it at least two, or remove the class")


def _check_number(name: str, class_names: Sequence[str]) -> None:
    if len(class_names) < MIN_CLASSES:
        raise DataError(
            f"{name}: {len(class_names)} classes found, the protocol needs at least {MIN_CLASSES}; add classes, or "
            "check that --data names the folder that holds them"
        )
