"""Reading the lists that publishers bring with their images, and holding what is found against what was published."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, DataRequest, ImageListing
from protocols.datasets.publication import Counts


class MissingImagesError(DataError):
    """Images that a list names are not there; `paths` are all of them, of `listed` images named."""

    def __init__(self, paths: Sequence[Path], listed: int, named_in: str) -> None:
        others = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
        super().__init__(f"{paths[0]}: named in {named_in} but missing{others}; unpack the archive again")
        self.paths, self.listed, self.named_in = tuple(paths), listed, named_in


def root_of(request: DataRequest, what: str) -> Path:
    """The folder that a request names; `what` says which one is meant."""
    if request.root is None:
        raise DataError(f"{request.name}: say where it lies with --data FOLDER ({what})")
    if not request.root.is_dir():
        raise DataError(f"{request.root}: no such folder; give {what} with --data")
    return request.root


def folder_with(root: Path, marker: str, unpacked: str) -> Path | None:
    """`root`, or the folder `unpacked` below it as the archive makes it: the one that holds `marker`."""
    return next((folder for folder in (root, root / unpacked) if (folder / marker).exists()), None)


def require(folder: Path, names: Sequence[str], archive: str) -> None:
    """Raises DataError naming the first of `names` that is not in `folder`."""
    for name in names:
        if not (folder / name).exists():
            raise DataError(f"{folder}: {name} is missing; unpack {archive} again")


def lines_of(path: Path, archive: str) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines; empty lines are passed over."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8; unpack {archive} again") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line


def number_in(path: Path, text: str, what: str) -> int:
    """`text` as a whole number; `what` names it in the complaint."""
    try:
        return int(text)
    except ValueError:
        raise DataError(f"{path}: {text!r} is not a {what}") from None


def require_images(root: Path, names: Sequence[str], named_in: str) -> None:
    """Raises MissingImagesError unless every image is there, DataError for one that is named twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{named_in}: image {name} is named twice; unpack the archive again")
        seen.add(name)
    if missing := [root / name for name in names if not (root / name).is_file()]:
        raise MissingImagesError(missing, len(names), named_in)


@dataclass(frozen=True)
class CountComparison:
    """One figure of a dataset as found and as published."""

    what: str
    found: int
    published: int


def compare_counts(listing: ImageListing, published: Counts) -> tuple[CountComparison, ...]:
    """Every figure that the publisher gives beside the one found."""
    images = listing.labels
    rows = [
        CountComparison("classes", len(listing.class_names), published.classes),
        CountComparison("images", len(images), published.images),
        CountComparison(
            f"images of the first {published.trainval_classes} classes",
            int((images < published.trainval_classes).sum()),
            published.trainval_images,
        ),
    ]
    if listing.trainval_classes is not None:
        rows.append(CountComparison("training classes", listing.trainval_classes, published.trainval_classes))
    if listing.is_query is not None and published.queries is not None and published.gallery is not None:
        tested = images >= (listing.trainval_classes or 0)
        rows.append(CountComparison("queries", int(np.sum(listing.is_query & tested)), published.queries))
        rows.append(CountComparison("gallery images", int(np.sum(~listing.is_query & tested)), published.gallery))
    return tuple(rows)


def check_counts(listing: ImageListing, published: Counts) -> None:
    """Raises DataError unless the listing is the whole published dataset."""
    rows = compare_counts(listing, published)
    if wrong := next((row for row in rows if row.found != row.published), None):
        raise DataError(
            f"{listing.dataset}: {len(listing.names)} images of {len(listing.class_names)} classes, published are "
            f"{published.images} of {published.classes} ({wrong.what}: {wrong.found} instead of {wrong.published}); "
            "complete the download, or use --subset if this is a part on purpose"
        )
