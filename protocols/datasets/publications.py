"""Facts from the publishers of the datasets (`publications.toml`), and comparison of a folder with them."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
class Archive:
    """A file of the publisher.

    Attributes:
        name: File name. A file without an archive's suffix is not unpacked.
        url: Address that needs no form; None if there is none.
        md5: MD5 checksum in hexadecimal; None if it is not known.
        size: Size in bytes; None if it is not known.
        folder: Folder to unpack it into.
    """

    name: str
    url: str | None = None
    md5: str | None = None
    size: int | None = None
    folder: str = "."


@dataclass(frozen=True)
class Publication:
    """Source and terms of a dataset.

    Attributes:
        place: Layout of the unpacked files.
    """

    publisher: str
    page: str
    terms: str
    place: str
    counts: Counts
    archives: tuple[Archive, ...]

    @property
    def source(self) -> str:
        """Publisher, page, terms, files and layout, one line each."""
        names = ", ".join(archive.name for archive in self.archives)
        return (
            f"publisher: {self.publisher}\npage: {self.page}\nterms: {self.terms}\nfiles: {names}\nlayout: {self.place}"
        )


def _publication(counts: dict[str, Any], archives: list[dict[str, Any]], **facts: str) -> Publication:
    return Publication(**facts, counts=Counts(**counts), archives=tuple(Archive(**archive) for archive in archives))


_FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PUBLICATIONS = {name: _publication(**facts) for name, facts in _FACTS.items()}


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
