"""A split of one's own: a file `split.csv` that says which classes, or which files, are for the test.

The file has a column `split` and a column `class` or `file`. With both, `class` is the class of each file in place of
its folder: where queries and gallery have folders of their own, a class is in several. The split is `train` or `test`;
for files it is also `query` or `gallery`, which divides the test images as In-Shop does. Training classes are ranked
before test classes, so that MLRC's four folds are cut from them as from the fixed training classes of other datasets
(specification, section 11). A class cannot be on both sides, since MLRC tests on classes that no training sees.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import DataError, ImageListing
from protocols.datasets.listing import names_of, table_of
from results.spec.data_choice import FEATURES

SPLIT_FILE = "split.csv"
"""Name of the file that is read if it lies beside the images or the features."""

_PARTS = ("train", "test", "query", "gallery")
_Lines = Sequence[tuple[int, Mapping[str, str]]]


def with_split(listing: ImageListing, chosen: Path | None) -> ImageListing:
    """Return a listing with the classes in the order of its given split; without a file it stays as it is.

    Args:
        chosen: The file that the experiment names; None takes the one beside the images, if there is one.
    """
    if chosen is not None and not chosen.is_file():
        raise DataError(f"{chosen}: no such file; dataset.split names a CSV file with the columns class and split")
    path = chosen or listing.root / SPLIT_FILE
    if not path.is_file():
        return listing
    columns, lines = table_of(path)
    if not columns & {"class", "file"} or "split" not in columns:
        raise DataError(f"{path}: its first line must name the column split, and the column class or the column file")
    if {"class", "file"} <= columns:
        listing = _with_classes(path, lines, listing)
    sample_parts = _sample_parts(path, "file" if "file" in columns else "class", lines, listing)
    trains = _training_classes(path, listing.class_names, listing.labels, sample_parts)
    order = [*np.flatnonzero(trains), *np.flatnonzero(~trains)]
    ranks = np.argsort(order).astype(np.int64)
    return replace(
        listing,
        class_names=tuple(listing.class_names[rank] for rank in order),
        labels=ranks[listing.labels],
        trainval_classes=int(trains.sum()),
        is_query=_queries(path, sample_parts),
        is_split_given=True,
    )


def _with_classes(path: Path, lines: _Lines, listing: ImageListing) -> ImageListing:
    """Give each file the class of the table; the classes are ranked by their names."""
    if listing.dataset == FEATURES:
        raise DataError(f"{path}: has a column class, but the labels of the features are their classes; remove it")
    class_of = _column(path, "file", "class", lines)
    _check_complete(path, "file", listing.names, class_of)
    classes = sorted(set(class_of.values()))
    rank_of = {name: rank for rank, name in enumerate(classes)}
    labels = [rank_of[class_of[name]] for name in listing.names]
    return replace(listing, class_names=tuple(classes), labels=np.asarray(labels, dtype=np.int64))


def _sample_parts(path: Path, key: str, lines: _Lines, listing: ImageListing) -> NDArray[np.str_]:
    """The part of each sample: train, test, query or gallery."""
    part_of = _column(path, key, "split", lines)
    known = _PARTS if key == "file" else _PARTS[:2]
    _raise_if_any(
        f"{path}: {key} {name!r} has the split {part!r}; known are {', '.join(known)}"
        + ("; queries need a column file" if part in _PARTS else "")
        for name, part in part_of.items()
        if part not in known
    )
    if key == "file" and not listing.names:
        raise DataError(f"{path}: has a column file, but the samples have no names; use a column class")
    names = listing.names if key == "file" else listing.class_names
    _check_complete(path, key, names, part_of)
    parts = np.asarray([part_of[name] for name in names])
    return parts if key == "file" else parts[listing.labels]


def _column(path: Path, key: str, column: str, lines: _Lines) -> dict[str, str]:
    """The value of a column for each class or file, which may be named again with the same value."""
    value_of: dict[str, str] = {}
    pairs = list(zip(names_of(path, key, lines), names_of(path, column, lines), strict=True))
    _raise_if_any(
        f"{path}: {key} {name!r} is in {value_of[name]!r} and in {value!r}; name it once"
        for name, value in pairs
        if value_of.setdefault(name, value) != value
    )
    return value_of


def _raise_if_any(faults: Iterable[str]) -> None:
    if found := list(faults):
        raise DataError(*found)


def _check_complete(path: Path, key: str, names: Sequence[str], named: Mapping[str, str]) -> None:
    """Refuse classes or files that only the data or only the file has."""
    known = set(names)
    _raise_if_any(
        [
            *(
                f"{path}: does not name the {key} {name!r}; give every {key} a split"
                for name in names
                if name not in named
            ),
            *(
                f"{path}: names the {key} {name!r}, which is not there; correct or remove the line"
                for name in sorted(named.keys() - known)
            ),
        ]
    )


def _training_classes(
    path: Path, class_names: Sequence[str], labels: NDArray[np.int64], sample_parts: NDArray[np.str_]
) -> NDArray[np.bool_]:
    is_training = sample_parts == "train"
    trained = np.bincount(labels[is_training], minlength=len(class_names)) > 0
    tested = np.bincount(labels[~is_training], minlength=len(class_names)) > 0
    _raise_if_any(
        f"{path}: class {class_names[rank]!r} is in train and in test; MLRC tests on classes that no training sees, so "
        "every class must be on one side"
        for rank in np.flatnonzero(trained & tested).tolist()
    )
    return trained


def _queries(path: Path, sample_parts: NDArray[np.str_]) -> NDArray[np.bool_] | None:
    used = set(sample_parts.tolist()) - {"train"}
    if used <= {"test"}:
        return None
    if "test" in used:
        raise DataError(f"{path}: has test beside query or gallery; name every test file query or gallery")
    return np.asarray(sample_parts == "query", dtype=np.bool_)
