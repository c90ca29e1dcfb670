"""Reading of the publishers' image lists, and comparison of a folder with the published counts."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, DataRequest, ImageListing
from protocols.datasets.publication import Counts


def root_of(request: DataRequest, what: str) -> Path:
    """Return the folder of a request."""
    if request.root is None:
        raise DataError(f"{request.choice.name}: say where it lies with --data FOLDER ({what})")
    if not request.root.is_dir():
        raise DataError(f"{request.root}: no such folder; --data must name {what}")
    return request.root


def folder_with(root: Path, marker: str, unpacked: str) -> Path | None:
    """Return the folder that contains `marker`: `root`, or the archive's folder `unpacked` in it; None if neither."""
    return next((folder for folder in (root, root / unpacked) if (folder / marker).exists()), None)


def require(folder: Path, names: Sequence[str], archive: str) -> None:
    """Raise DataError if one of `names` is not in `folder`; the message names the first one and the archive."""
    for name in names:
        if not (folder / name).exists():
            raise DataError(f"{folder}: {name} is missing; unpack {archive} again")


def lines_of(path: Path, archive: str) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line that is not empty; raise DataError unless it is UTF-8."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8; unpack {archive} again") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line


def table_of(path: Path) -> tuple[set[str], list[tuple[int, dict[str, str]]]]:
    """Return the columns of a CSV file, and its rows by column, each with the number of its line.

    Empty lines are left out. Raises DataError if a column is named twice, or if a row has not as many cells as there
    are columns.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            columns = [name.strip() for name in next(reader, [])]
            rows = [(reader.line_num, cells) for cells in reader if cells]
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: not a CSV file in UTF-8 ({error})") from error
    if twice := [name for name in columns if name and columns.count(name) > 1]:
        raise DataError(f"{path}: its first line names the column {twice[0]} twice; name it once")
    if wrong := next(((number, len(cells)) for number, cells in rows if len(cells) != len(columns)), None):
        raise DataError(
            f"{path}: line {wrong[0]} has {wrong[1]} cells, and the first line names {len(columns)} columns; give "
            "every line as many cells"
        )
    return set(columns), [(number, dict(zip(columns, cells, strict=True))) for number, cells in rows]


def names_of(path: Path, column: str, lines: Sequence[tuple[int, Mapping[str, str]]]) -> list[str]:
    """Return a column of a user's CSV file without blanks around its cells; raise DataError if a cell is empty."""
    names = [cells[column].strip() for _, cells in lines]
    if "" in names:
        raise DataError(f"{path}: line {lines[names.index('')][0]} has no {column}; give one to every row")
    return names


def number_in(path: Path, text: str, what: str) -> int:
    """Return `text` as a whole number; raise DataError, with its description `what`, if it is not one."""
    try:
        return int(text)
    except ValueError:
        raise DataError(f"{path}: {text!r} is not a {what}") from None


def require_images(root: Path, names: Sequence[str], named_in: str) -> None:
    """Check that all images of a list exist, and that none is named twice."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"{named_in}: image {twice} is named twice; unpack the archive again")
    if missing := [root / name for name in names if not (root / name).is_file()]:
        raise DataError(*(f"{path}: named in {named_in} but missing; unpack the archive again" for path in missing))


@dataclass(frozen=True)
class CountComparison:
    """A count of a dataset beside the published count."""

    what: str
    found: int
    published: int


def compare_counts(listing: ImageListing, published: Counts) -> tuple[CountComparison, ...]:
    """Compare all counts of a listing with the published counts."""
    labels = listing.labels
    rows = [
        CountComparison("classes", len(listing.class_names), published.classes),
        CountComparison("images", len(labels), published.images),
        CountComparison(
            f"images of the first {published.trainval_classes} classes",
            int((labels < published.trainval_classes).sum()),
            published.trainval_images,
        ),
    ]
    if listing.trainval_classes is not None:
        rows.append(CountComparison("training classes", listing.trainval_classes, published.trainval_classes))
    if listing.is_query is not None and published.queries is not None and published.gallery is not None:
        tested = labels >= (listing.trainval_classes or 0)
        rows.append(CountComparison("queries", int(np.sum(listing.is_query & tested)), published.queries))
        rows.append(CountComparison("gallery images", int(np.sum(~listing.is_query & tested)), published.gallery))
    return tuple(rows)


def check_counts(listing: ImageListing, published: Counts) -> None:
    """Raise DataError unless the listing has all published counts; the message names the first that differs."""
    rows = compare_counts(listing, published)
    if wrong := next((row for row in rows if row.found != row.published), None):
        raise DataError(
            f"{listing.dataset}: {len(listing.names)} images of {len(listing.class_names)} classes, published are "
            f"{published.images} of {published.classes} ({wrong.what}: {wrong.found} instead of {wrong.published}); "
            "complete the download, or use --subset if this is a part on purpose"
        )
