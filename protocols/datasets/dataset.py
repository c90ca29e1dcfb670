"""A dataset in the form that protocols use: classes, labels, packed images and a fingerprint."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.notes_on_data import equal_in_several_classes, named
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import Packing, pack_files
from protocols.progress import Progress
from protocols.samples import Samples
from protocols.splits import MIN_CLASSES
from results.spec.conditions import ImageSettings
from results.spec.data_choice import FOLDER, OWN_DATA, DataChoice
from results.values import fingerprint_of


class DataError(Exception):
    """A dataset cannot be used.

    Attributes:
        faults: All that is wrong. Each is one line that names the file or the class, and the remedy. The message has
            the first and the number of the others.
    """

    def __init__(self, *faults: str) -> None:
        more = f" (and {len(faults) - 1} more; `reproduce data check` names all)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}")
        self.faults = faults


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
    left_out: tuple[str, ...] = ()

    def at(self, rows: NDArray[np.int64]) -> "ImageListing":
        """Return the listing of the images at positions (k,), with all its classes."""
        names = tuple(self.names[row] for row in rows)
        return replace(
            self, names=names, labels=self.labels[rows], is_query=None if self.is_query is None else self.is_query[rows]
        )


@dataclass(frozen=True)
class Dataset:
    """Images, or features in their place, with their classes.

    Attributes:
        name: Name of the dataset.
        class_names: Names of the classes, in the order of the class ranks.
        images: The n images with their class ranks, or their features.
        fingerprint: Hash of the content. It changes with every file, every class and every image that is left out.
        left_out: Phrases with number and names of images and classes that are no part of the data.
        trainval_classes: Number of classes that the conventional split trains on; they are the first ones. None if the
            dataset has no conventional split.
        is_query: (n,), whether an image is a query or in the gallery, if the publisher separates them; else None. It
            matters only for test classes.
        names: Names of the n images: paths below their folder. Empty if they are not known.
        pictures: The images that the features were computed of, to show them; None if `images` are images.
        is_split_given: Whether the user's split file, or a publisher's split that is the only one of its dataset, says
            which classes are for the test. Every protocol then uses it.
        equal_files: Groups of positions of images whose files are equal, but which are of several classes.
    """

    name: str
    class_names: tuple[str, ...]
    images: Samples
    fingerprint: str
    left_out: tuple[str, ...] = ()
    trainval_classes: int | None = None
    is_query: NDArray[np.bool_] | None = None
    names: tuple[str, ...] = ()
    pictures: LabelledImages | None = None
    is_split_given: bool = False
    equal_files: tuple[tuple[int, ...], ...] = ()

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def are_test_classes_given(self) -> bool:
        """Whether only certain classes can be tested: those of the publisher's queries, or of a given split."""
        return self.is_split_given or self.is_query is not None


@dataclass(frozen=True)
class DataRequest:
    """A dataset and how to read it.

    Attributes:
        choice: Its name, and what of it counts. Its `root` is not read.
        images: Transforms of the images; `resize` is applied when the images are packed.
        cache: Folder of the packed images.
        root: Folder of the images; None for embedded datasets.
        progress: Called with the number of packed images and the number of all images.
    """

    choice: DataChoice
    images: ImageSettings
    cache: Path
    root: Path | None = None
    progress: Progress | None = None


def from_listing(listing: ImageListing, request: DataRequest) -> Dataset:
    """Pack the images of a listing and check that every class can be evaluated."""
    listing = without_small_classes(listing, request.choice.min_images)[0]
    check_listing(listing)
    # Resolved, so that two spellings of one folder give the same pack.
    identity = [listing.dataset, str(listing.root.resolve()), request.images.resize]
    packing = pack_files(
        listing.root,
        listing.names,
        request.images.resize,
        request.cache / fingerprint_of(identity),
        skip_broken=request.choice.skip_broken_images,
        progress=request.progress,
        as_mlrc=reads_as_mlrc(listing.dataset),
    )
    return _packed(listing, packing, request.choice.min_images)


def reads_as_mlrc(dataset: str) -> bool:
    """Return whether a dataset's images are decoded as in MLRC's code; a user's own are decoded as people see them."""
    return dataset not in OWN_DATA


def from_packing(
    name: str, class_names: tuple[str, ...], names: Sequence[str], labels: NDArray[np.int64], packing: Packing
) -> Dataset:
    """Make a dataset of packed images, with their class ranks (n,); the first half of the classes is for training."""
    conventional = len(class_names) - len(class_names) // 2
    return _packed(ImageListing(name, Path(), class_names, tuple(names), labels, conventional), packing)


def _packed(listing: ImageListing, packing: Packing, min_images: int | None = None) -> Dataset:
    skipped = set(packing.skipped)
    rows = np.asarray([row for row, image in enumerate(listing.names) if image not in skipped], dtype=np.int64)
    listing = listing.at(rows)
    if skipped:
        phrase = named("image(s) that cannot be decoded", packing.skipped)
        listing = replace(listing, left_out=(*listing.left_out, phrase))
    listing, kept = without_small_classes(listing, min_images)
    check_listing(listing)
    rows = rows[kept]
    identity = [listing.class_names, listing.names, listing.labels.tolist(), packing.content_hash, packing.skipped]
    if listing.is_query is not None:
        identity.append(listing.is_query.tolist())
    if listing.is_split_given:
        identity.append({"trainval_classes": listing.trainval_classes})
    position = {row: number for number, row in enumerate(rows.tolist())}
    equal = [tuple(position[row] for row in group if row in position) for group in packing.equal_files]
    return Dataset(
        listing.dataset,
        listing.class_names,
        LabelledImages(packing.images, rows, listing.labels),
        fingerprint_of(identity),
        listing.left_out,
        listing.trainval_classes,
        listing.is_query,
        listing.names,
        is_split_given=listing.is_split_given,
        equal_files=equal_in_several_classes(equal, listing.labels),
    )


def without_small_classes(listing: ImageListing, least: int | None) -> tuple[ImageListing, NDArray[np.int64]]:
    """Leave out the classes with fewer than `least` images; None leaves out none.

    Returns:
        The listing of the other classes, and the positions of its images in the given one, (k,).
    """
    n_classes = len(listing.class_names)
    keeps = np.bincount(listing.labels, minlength=n_classes) >= (least or 0)
    rows = np.flatnonzero(keeps[listing.labels])
    if keeps.all():
        return listing, rows
    small = [name for name, kept in zip(listing.class_names, keeps, strict=True) if not kept]
    names = tuple(name for name, kept in zip(listing.class_names, keeps, strict=True) if kept)
    conventional = len(names) - len(names) // 2
    trainval = int(keeps[: listing.trainval_classes].sum()) if listing.is_split_given else conventional
    left = listing.at(rows)
    phrase = named(f"class(es) with fewer than {least} images", small)
    return replace(
        left,
        class_names=names,
        labels=np.cumsum(keeps)[left.labels].astype(np.int64) - 1,
        trainval_classes=trainval,
        left_out=(*left.left_out, phrase),
    ), rows


def check_listing(listing: ImageListing, sample: str = "image") -> None:
    """Raise DataError, with all faults, unless there are enough classes and every class has enough images.

    All names must be UTF-8. If queries and gallery are separated, a test class with a query needs a gallery image, some
    test class needs a query, and a training class needs one image: the validation skips queries without another image
    of their class. A test class without a query only adds to the gallery. Otherwise every class needs two images.
    """
    if faults := [*_unwritable_names(listing), *_faults_of_classes(listing, sample)]:
        raise DataError(*faults)


def _unwritable_names(listing: ImageListing) -> list[str]:
    faults = []
    for name in (str(listing.root.resolve()), *listing.class_names, *listing.names):
        try:
            name.encode()
        except UnicodeEncodeError:
            faults.append(f"{listing.dataset}: the name {name!r} is not UTF-8; rename the file or folder")
    return faults


def _faults_of_classes(listing: ImageListing, sample: str) -> list[str]:
    name, n_classes, faults = listing.dataset, len(listing.class_names), list[str]()
    if n_classes < MIN_CLASSES:
        faults.append(
            f"{name}: {n_classes} classes found, the protocol needs at least {MIN_CLASSES}; add classes, or "
            "check that --data names the folder that holds them"
        )
    counts = np.bincount(listing.labels, minlength=n_classes).tolist()
    if listing.is_query is None:
        small = ", or leave out small classes with --set dataset.min_images=2" if name == FOLDER else ""
        for rank, class_name in enumerate(listing.class_names):
            if counts[rank] < 2:
                count = f"only one {sample}" if counts[rank] else f"no {sample}"
                faults.append(
                    f"{name}: class {class_name!r} has {count}; give it at least two, or remove the class{small}"
                )
        return faults
    queries = np.bincount(listing.labels[listing.is_query], minlength=n_classes).tolist()
    for rank, class_name in enumerate(listing.class_names):
        is_tested = rank >= (listing.trainval_classes or 0)
        if not counts[rank]:
            faults.append(f"{name}: class {class_name!r} has no {sample}; complete it, or remove the class")
        elif is_tested and queries[rank] == counts[rank]:
            faults.append(f"{name}: class {class_name!r} has no gallery {sample}; complete it, or remove the class")
    if not any(queries[listing.trainval_classes or 0 :]):
        faults.append(f"{name}: no test class has a query; name the {sample}s that are searched for")
    return faults
