"""The datasets by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from protocols.datasets.cars196 import list_cars196
from protocols.datasets.cub200 import list_cub200
from protocols.datasets.dataset import DataError, DataRequest, Dataset, ImageListing, from_listing
from protocols.datasets.feature_files import open_features
from protocols.datasets.folder import list_folder, open_folder
from protocols.datasets.glyphs import open_glyphs
from protocols.datasets.inat2018 import list_inat2018
from protocols.datasets.inshop import list_inshop
from protocols.datasets.listing import check_counts, root_of
from protocols.datasets.publication import CARS196, CUB200, INAT2018, INSHOP, SOP, Publication
from protocols.datasets.sop import list_sop


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

    opener: Callable[[DataRequest], Dataset]
    description: str
    lister: Callable[[Path], ImageListing] | None = None
    publication: Publication | None = None


def _published(
    description: str, lister: Callable[[Path], ImageListing], publication: Publication, where: str
) -> DatasetEntry:
    """The entry of a dataset in its publisher's layout; `where` says in messages what its folder is."""

    def opener(request: DataRequest) -> Dataset:
        listing = lister(root_of(request, where))
        if not request.choice.subset:
            check_counts(listing, publication.counts)
        return from_listing(listing, request)

    return DatasetEntry(opener, description, lister, publication)


DATASETS = {
    "glyphs": DatasetEntry(open_glyphs, "characters in matplotlib's 16 typefaces; embedded, nothing to download"),
    "cub200": _published(
        "CUB-200-2011: photographs of bird species",
        list_cub200,
        CUB200,
        "the unpacked CUB_200_2011, which holds images.txt",
    ),
    "cars196": _published(
        "Cars196: photographs of car models; train and test pooled",
        list_cars196,
        CARS196,
        "the folder with cars_annos.mat and car_ims, with cars_train and cars_test, or with train",
    ),
    "sop": _published(
        "Stanford Online Products: products in online shops",
        list_sop,
        SOP,
        "the unpacked Stanford_Online_Products, which holds Ebay_train.txt",
    ),
    "inshop": _published(
        "In-Shop Clothes Retrieval (DeepFashion): clothes; queries against a gallery",
        list_inshop,
        INSHOP,
        "the folder with Eval/list_eval_partition.txt and Img/img",
    ),
    "inat2018": _published(
        "iNaturalist 2018: photographs of species; the retrieval split of Smooth-AP's authors",
        list_inat2018,
        INAT2018,
        "the folder with train2018.json, val2018.json, train_val2018 and Inat_dataset_splits",
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
    """Open a dataset; raise DataError, with the remedy in one line, if it is unknown or cannot be used."""
    return entry_of(request.choice.name).opener(request)
