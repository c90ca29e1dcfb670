"""The datasets by name: how each is opened, and a check that finds all faults of a folder at once and mends none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataRequest, Dataset, from_listing, oddities
from protocols.datasets.feature_files import open_features
from protocols.datasets.folder import check_parts, list_class_folders, list_folder
from protocols.datasets.glyphs import open_glyphs
from protocols.datasets.listing import (
    DataError,
    ImageListing,
    check_listing,
    named,
    part_of,
    root_of,
    without_small_classes,
)
from protocols.datasets.looks import looks_at, masks, near_copies
from protocols.datasets.published import (
    PUBLICATIONS,
    Publication,
    check_counts,
    list_cars196,
    list_cub200,
    list_inshop,
    list_sop,
)
from protocols.datasets.split_file import with_split
from protocols.images.packing import (
    Progress,
    equal_rows,
    hash_of_file,
)
from results.spec.data_choice import OWN_DATA


@dataclass(frozen=True)
class DatasetEntry:
    """The functions and facts of a dataset.

    Attributes:
        description: One line for lists of datasets.
        lister: Lists the images below a folder without reading them or checking counts; None for embedded datasets and
            features.
        publication: Source and counts; None if nobody published them.
        opener: Opens a dataset that nobody published; None for one in its publisher's layout.
    """

    description: str
    lister: Callable[[Path], ImageListing] | None = None
    publication: Publication | None = None
    opener: Callable[[DataRequest], Dataset] | None = None


def _open_folder(request: DataRequest) -> Dataset:
    root = root_of(request.choice.name, request.choice.root, "the folder that holds one folder of images per class")
    return from_listing(list_folder(root, split=request.choice.split), request)


DATASETS = {
    "glyphs": DatasetEntry(
        "characters in matplotlib's 16 typefaces; embedded, nothing to download", opener=open_glyphs
    ),
    "cub200": DatasetEntry("CUB-200-2011: photographs of bird species", list_cub200, PUBLICATIONS["cub200"]),
    "cars196": DatasetEntry(
        "Cars196: photographs of car models; train and test pooled", list_cars196, PUBLICATIONS["cars196"]
    ),
    "sop": DatasetEntry("Stanford Online Products: products in online shops", list_sop, PUBLICATIONS["sop"]),
    "inshop": DatasetEntry(
        "In-Shop Clothes Retrieval (DeepFashion): clothes; queries against a gallery",
        list_inshop,
        PUBLICATIONS["inshop"],
    ),
    "folder": DatasetEntry("any folder of images: one folder per class", list_class_folders, opener=_open_folder),
    "features": DatasetEntry(
        "features without images: features.npy and labels.csv or labels.npy", opener=open_features
    ),
}


def entry_of(name: str) -> DatasetEntry:
    """Return the registry's entry of a dataset."""
    if name not in DATASETS:
        raise DataError(f"unknown dataset {name!r}; known are {', '.join(sorted(DATASETS))}")
    return DATASETS[name]


def open_dataset(request: DataRequest) -> Dataset:
    """Open a dataset; raise DataError, with the remedy in one line, if it is unknown or cannot be used."""
    choice, entry = request.choice, entry_of(request.choice.name)
    if entry.opener is not None:
        return entry.opener(request)
    published = entry.publication
    assert published is not None
    assert entry.lister is not None
    listing = entry.lister(
        root_of(choice.name, choice.root, f"the folder with {published.place}; from {published.page}")
    )
    if not choice.subset:
        check_counts(listing, published)
    return from_listing(listing, request)


def check_images(
    listing: ImageListing, min_images: int | None, skip_broken: bool, progress: Progress
) -> tuple[ImageListing, list[str], str | None]:
    """Check a listing and open all its files; a folder of the user's images has no split yet, and `split.csv` is read.

    Args:
        min_images: Classes with fewer images are left out; None leaves none out.
        skip_broken: Whether images that cannot be decoded are left out instead of being faults. They never count for
            their class.
        progress: Called with the number of opened images and the number of all images.

    Returns:
        The images that a run would use; what it would refuse, each in one line with the remedy; a phrase on equal,
        nearly equal and constant images and masks, None without any.
    """
    faults: list[str] = []
    try:
        if listing.name in OWN_DATA:
            listing = with_split(listing, None)
            check_parts(listing)
    except DataError as error:
        faults += error.faults
    looks = looks_at(listing, progress)
    broken = [row for row, look in enumerate(looks) if look.fault is not None]
    if not skip_broken:
        faults += [str(looks[row].fault) for row in broken]
    phrase = named("image", [listing.names[row] for row in broken], "that cannot be decoded")
    sound = np.setdiff1d(np.arange(len(listing.names)), broken)
    left, kept = without_small_classes(
        part_of(listing, sound, *([phrase] if broken and skip_broken else [])), min_images
    )
    try:
        check_listing(left)
    except DataError as error:
        faults += error.faults
    seen = [looks[row] for row in sound[kept]]
    constant = [place for place, look in enumerate(seen) if look.is_constant]
    tested = range(left.trainval_classes, left.n_classes)
    odd = (oddities(left, _contents(left), constant, tested), near_copies(left, seen), masks(left, seen))
    return left, faults, "; ".join(filter(None, odd)) or None


def _contents(listing: ImageListing) -> list[bytes | None]:
    """Return the hashes of the files that are as large as another one, and None for the others."""
    paths = [listing.root / name for name in listing.names]
    sizes = [path.stat().st_size if path.is_file() else None for path in paths]
    alike = {row for group in equal_rows(sizes) for row in group}
    return [hash_of_file(path) if row in alike else None for row, path in enumerate(paths)]
