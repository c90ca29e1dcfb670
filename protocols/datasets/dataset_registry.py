"""The datasets by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from protocols.datasets.cars196 import list_cars196, open_cars196
from protocols.datasets.cub200 import list_cub200, open_cub200
from protocols.datasets.dataset import DataError, DataRequest, Dataset, ImageListing, Opener
from protocols.datasets.feature_files import open_features
from protocols.datasets.folder import list_folder, open_folder
from protocols.datasets.glyphs import open_glyphs
from protocols.datasets.inshop import list_inshop, open_inshop
from protocols.datasets.publication import CARS196, CUB200, INSHOP, SOP, Publication
from protocols.datasets.sop import list_sop, open_sop

EMBEDDED = frozenset({"glyphs"})


@dataclass(frozen=True)
class DatasetEntry:
    """The functions and facts of a dataset.

    Attributes:
        opener: Opens the dataset.
        description: One line for lists of datasets.
        lister: Lists the images below a folder without reading them or checking counts; None for embedded datasets and
            features.
        publication: Source, terms and counts; None if nobody published them.
    """

    opener: Opener
    description: str
    lister: Callable[[Path], ImageListing] | None = None
    publication: Publication | None = None


DATASETS = {
    "glyphs": DatasetEntry(open_glyphs, "characters in matplotlib's 16 typefaces; embedded, nothing to download"),
    "cub200": DatasetEntry(
        open_cub200,
        "CUB-200-2011: photographs of bird species",
        lambda root: list_cub200(root, subset=True),
        CUB200,
    ),
    "cars196": DatasetEntry(
        open_cars196,
        "Cars196: photographs of car models; train and test pooled",
        lambda root: list_cars196(root, subset=True),
        CARS196,
    ),
    "sop": DatasetEntry(
        open_sop,
        "Stanford Online Products: products in online shops",
        lambda root: list_sop(root, subset=True),
        SOP,
    ),
    "inshop": DatasetEntry(
        open_inshop,
        "In-Shop Clothes Retrieval (DeepFashion): clothes; queries against a gallery",
        lambda root: list_inshop(root, subset=True),
        INSHOP,
    ),
    "folder": DatasetEntry(open_folder, "any folder of images: one folder per class", list_folder),
    "features": DatasetEntry(open_features, "features without images: features.npy and labels.csv or labels.npy"),
}


def entry_of(name: str) -> DatasetEntry:
    """Return the registry's entry of a dataset."""
    if name not in DATASETS:
        raise DataError(f"unknown dataset {name!r}; known are {', '.join(sorted(DATASETS))}")
    return DATASETS[name]


def open_dataset(request: DataRequest) -> Dataset:
    """Open a dataset.

    Args:
        request: Name, folder and settings.

    Returns:
        The dataset, with packed images.

    Raises:
        DataError: The dataset is unknown or cannot be used. The message is one line with the remedy.
    """
    return entry_of(request.name).opener(request)
