"""A dataset ready for a protocol: classes, labels, packed images and a fingerprint."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.images.packed import LabelledImages
from protocols.images.packing import Packing, Progress, pack_files
from protocols.splits import MIN_CLASSES
from results.specs import ImageSettings
from results.values import fingerprint_of


class DataError(Exception):
    """A dataset cannot be used; the message names the file or class and what to do."""


@dataclass(frozen=True)
class ImageListing:
    """Which images a dataset has, before any is read.

    class_names: in the order of the class ids. names: paths below `root`. labels: class rank of each, int64.
    """

    dataset: str
    root: Path
    class_names: tuple[str, ...]
    names: tuple[str, ...]
    labels: NDArray[np.int64]


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
    check_classes(listing.dataset, listing.class_names, listing.labels)
    folder = request.cache / fingerprint_of([listing.dataset, str(listing.root), request.images.resize])
    packing = pack_files(
        listing.root,
        listing.names,
        request.images.resize,
        folder,
        skip_broken=request.skip_broken,
        progress=request.progress,
    )
    return from_packing(listing.dataset, listing.class_names, listing.names, listing.labels, packing)


def from_packing(
    name: str, class_names: tuple[str, ...], names: Sequence[str], labels: NDArray[np.int64], packing: Packing
) -> Dataset:
    """A dataset of the packed images that were not left out."""
    left_out = set(packing.skipped)
    rows = np.asarray([row for row, image in enumerate(names) if image not in left_out], dtype=np.int64)
    check_classes(name, class_names, labels[rows])
    fingerprint = fingerprint_of(
        [class_names, [names[row] for row in rows], labels[rows].tolist(), packing.content_hash, packing.skipped]
    )
    return Dataset(name, class_names, LabelledImages(packing.images, rows, labels[rows]), fingerprint, packing.skipped)


def check_classes(name: str, class_names: Sequence[str], labels: NDArray[np.int64]) -> None:
    """Raises DataError for too few classes or a class that no query can be scored on."""
    if len(class_names) < MIN_CLASSES:
        raise DataError(
            f"{name}: {len(class_names)} classes found, the protocol needs at least {MIN_CLASSES}; add classes, or "
            "check that --data names the folder that holds them"
        )
    counts = Counter(labels.tolist())
    for rank, class_name in enumerate(class_names):
        if counts[rank] < 2:
            few = "no image" if counts[rank] == 0 else "only one image"
            raise DataError(f"{name}: class {class_name!r} has {few}; give it at least two, or remove the class")
