"""The datasets by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from protocols.datasets.dataset import DataRequest, Dataset, from_listing
from protocols.datasets.feature_files import open_features
from protocols.datasets.folder import list_class_folders, list_folder
from protocols.datasets.glyphs import open_glyphs
from protocols.datasets.listing import DataError, ImageListing, root_of
from protocols.datasets.published import (
    PUBLICATIONS,
    Publication,
    check_counts,
    list_cars196,
    list_cub200,
    list_inshop,
    list_sop,
)


@dataclass(frozen=True)
class DatasetEntry:
    """The functions and facts of a dataset.

    Attributes:
        opener: Opens the dataset.
        description: One line for lists of datasets.
        lister: Lists the images below a folder without reading them or checking counts; None for embedded datasets and
            features.
        publication: Source and counts; None if nobody published them.
    """

    opener: Callable[[DataRequest], Dataset]
    description: str
    lister: Callable[[Path], ImageListing] | None = None
    publication: Publication | None = None


def _published(name: str, lister: Callable[[Path], ImageListing], description: str) -> DatasetEntry:
    """The entry of a dataset in its publisher's layout."""
    publication = PUBLICATIONS[name]

    def opener(request: DataRequest) -> Dataset:
        listing = lister(
            root_of(name, request.choice.root, f"the folder with {publication.place}; from {publication.page}")
        )
        if not request.choice.subset:
            check_counts(listing, publication)
        return from_listing(listing, request)

    return DatasetEntry(opener, description, lister, publication)


def _open_folder(request: DataRequest) -> Dataset:
    root = root_of(request.choice.name, request.choice.root, "the folder that holds one folder of images per class")
    return from_listing(list_folder(root, split=request.choice.split), request)


DATASETS = {
    "glyphs": DatasetEntry(open_glyphs, "characters in matplotlib's 16 typefaces; embedded, nothing to download"),
    "cub200": _published("cub200", list_cub200, "CUB-200-2011: photographs of bird species"),
    "cars196": _published("cars196", list_cars196, "Cars196: photographs of car models; train and test pooled"),
    "sop": _published("sop", list_sop, "Stanford Online Products: products in online shops"),
    "inshop": _published(
        "inshop", list_inshop, "In-Shop Clothes Retrieval (DeepFashion): clothes; queries against a gallery"
    ),
    "folder": DatasetEntry(_open_folder, "any folder of images: one folder per class", list_class_folders),
    "features": DatasetEntry(open_features, "features without images: features.npy and labels.csv or labels.npy"),
}


def entry_of(name: str) -> DatasetEntry:
    """Return the registry's entry of a dataset."""
    if name not in DATASETS:
        raise DataError(f"unknown dataset {name!r}; known are {', '.join(sorted(DATASETS))}")
    return DATASETS[name]


def open_dataset(request: DataRequest) -> Dataset:
    """Open a dataset; raise DataError, with the remedy in one line, if it is unknown or cannot be used."""
    return entry_of(request.choice.name).opener(request)
