"""Facts from the publishers of the datasets, and comparison of a folder with them."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from protocols.datasets.dataset import Dataset
from protocols.datasets.listing import DataError, ImageListing
from protocols.images.packed_images import LabelledImages, PackedImages


@dataclass(frozen=True)
class Counts:
    """The published counts of a dataset.

    Attributes:
        trainval_classes: Number of classes that the conventional split trains on; they are the first ones.
        trainval_images: Number of their images.
        queries: Number of queries of the other classes; None if the publisher does not separate queries and gallery.
        gallery: Number of gallery images of the other classes, likewise.
    """

    classes: int
    images: int
    trainval_classes: int
    trainval_images: int
    queries: int | None = None
    gallery: int | None = None


@dataclass(frozen=True)
class Publication:
    """Where a dataset is from.

    Attributes:
        page: Address of the publisher's page.
        place: Layout of the unpacked files.
    """

    page: str
    place: str
    counts: Counts


# Sources of the counts: specification, section 1; for SOP's images per part Song et al. 2016, table 1.
PUBLICATIONS = {
    "cub200": Publication(
        "https://data.caltech.edu/records/65de6-vp158",
        "CUB_200_2011/ with images.txt, classes.txt, image_class_labels.txt and images/",
        Counts(200, 11_788, 100, 5_864),
    ),
    "cars196": Publication(
        "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        "cars_annos.mat beside car_ims/; or cars_train/, cars_test/ and devkit/ with cars_train_annos.mat and "
        "cars_test_annos_withlabels.mat; or train/ and test/ with one folder per class name",
        Counts(196, 16_185, 98, 8_054),
    ),
    "sop": Publication(
        "https://cvgl.stanford.edu/projects/lifted_struct/",
        "Stanford_Online_Products/ with Ebay_train.txt, Ebay_test.txt and the folders *_final/",
        Counts(22_634, 120_053, 11_318, 59_551),
    ),
    "inshop": Publication(
        "https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html",
        "Eval/list_eval_partition.txt (or list_eval_partition.txt) and Img/img/ (or img/) with WOMEN/ and MEN/",
        Counts(7_982, 52_712, 3_997, 25_882, queries=14_218, gallery=12_612),
    ),
}


class CountComparison(NamedTuple):
    """A count of a dataset beside the published count."""

    what: str
    found: int
    published: int


def compare_counts(listing: ImageListing, published: Counts) -> tuple[CountComparison, ...]:
    """Compare all counts of a listing with the published counts."""
    first, trainval = published.trainval_classes, listing.trainval_classes
    rows: list[tuple[str, int | None, int | None]] = [
        ("classes", listing.n_classes, published.classes),
        ("images", len(listing.labels), published.images),
        (f"images of the first {first} classes", int((listing.labels < first).sum()), published.trainval_images),
        ("training classes", trainval, first),
    ]
    if listing.is_query is not None:
        queries = listing.is_query[listing.labels >= (trainval or 0)]
        rows += [("queries", int(queries.sum()), published.queries)]
        rows += [("gallery images", int((~queries).sum()), published.gallery)]
    return tuple(
        CountComparison(what, found, known) for what, found, known in rows if found is not None and known is not None
    )


def check_counts(listing: ImageListing, published: Counts) -> None:
    """Raise DataError unless the listing has all published counts; the message names the first that differs."""
    rows = compare_counts(listing, published)
    if wrong := next((row for row in rows if row.found != row.published), None):
        raise DataError(
            f"{listing.name}: {len(listing.names)} images of {listing.n_classes} classes, published are "
            f"{published.images} of {published.classes} ({wrong.what}: {wrong.found} instead of {wrong.published}); "
            "complete the download, or use --subset if this is a part on purpose"
        )


def stand_in(name: str, counts: Counts) -> Dataset:
    """Make a dataset with the published counts and without images, to plan an experiment before the download.

    Images are spread evenly over the classes. Its fingerprint is `stand-in`, so that it is not taken for real data.
    """
    first, rest = counts.trainval_classes, counts.classes - counts.trainval_classes
    images = np.arange(counts.images)
    is_first = images < counts.trainval_images
    labels = np.sort(np.where(is_first, images % first, first + (images - counts.trainval_images) % rest))
    return Dataset(
        name=name,
        root=Path(),
        class_names=tuple(str(rank) for rank in range(counts.classes)),
        names=(),
        labels=labels,
        trainval_classes=first,
        is_query=None if counts.queries is None else images < counts.trainval_images + counts.queries,
        images=LabelledImages(PackedImages(Path()), images, labels),
        fingerprint="stand-in",
    )
