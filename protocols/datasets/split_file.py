"""A split of one's own: a file `split.csv` that says which classes, or which files, are for the test.

The file has a column `split` and a column `class` or `file`. With both, `class` is the class of each file in place of
its folder: where queries and gallery have folders of their own, a class is in several. The split is `train` or `test`;
for files it is also `query` or `gallery`, which divides the test images as In-Shop does. Training classes are ranked
before test classes, so that MLRC's four folds are cut from them as from the fixed training classes of other datasets
(specification, section 11). A class cannot be on both sides, since MLRC tests on classes that no training sees. If all
files are queries or gallery, the protocol chooses the test classes as it does without a file.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.listing import DataError, ImageListing, composed, named, ranked
from results.spec.data_choice import FEATURES
from results.wording import counted

SPLIT_FILE = "split.csv"
"""Name of the file that is read if it lies beside the images or the features."""

_PARTS = ("train", "test", "query", "gallery")


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
    table = table_of(path, ("class", "file", "split"))
    key = "file" if "file" in table else "class"
    if key not in table or "split" not in table:
        raise DataError(f"{path}: its first line must name the column split, and the column class or the column file")
    if key == "file" and not listing.names:
        raise DataError(f"{path}: has a column file, but the samples have no names; use a column class")
    names = listing.names if key == "file" else listing.class_names
    if {"class", "file"} <= table.keys():
        if listing.name == FEATURES:
            raise DataError(f"{path}: has a column class, but the labels of the features are their classes; remove it")
        class_names, labels = ranked(_values(path, table, "file", "class", names))
        listing = replace(listing, class_names=class_names, labels=labels)
    parts = np.asarray(_values(path, table, key, "split", names, _PARTS if key == "file" else _PARTS[:2]))
    if key == "class":
        parts = parts[listing.labels]
    is_query, trains = _queries(path, parts), _training_classes(path, listing, parts)
    if is_query is not None and not trains.any():
        return replace(listing, is_query=is_query)
    order = np.argsort(~trains, kind="stable")
    return replace(
        listing,
        class_names=tuple(listing.class_names[rank] for rank in order),
        labels=np.argsort(order)[listing.labels],
        given_trainval=int(trains.sum()),
        is_query=is_query,
    )


def table_of(path: Path, columns: Sequence[str]) -> dict[str, list[str]]:
    """Return those of the columns that a user's CSV file has, without blanks around the cells.

    Raises DataError if a column is named twice, a row has not as many cells as there are columns, or a cell is empty.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(reader, [])]
            rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if cells]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: not a CSV file in UTF-8 ({error})") from error
    found = [name for name in columns if name in header]
    for name in found:
        if header.count(name) > 1:
            raise DataError(f"{path}: its first line names the column {name} twice; name it once")
    for number, cells in rows:
        if len(cells) != len(header):
            raise DataError(
                f"{path}: line {number} has {counted(len(cells), 'cell')}, and the first line names "
                f"{counted(len(header), 'column')}; give every line as many cells"
            )
        if empty := [name for name in found if not cells[header.index(name)]]:
            raise DataError(f"{path}: line {number} has no {empty[0]}; give one to every row")
    return {name: [cells[header.index(name)] for _, cells in rows] for name in found}


def _values(
    path: Path,
    table: Mapping[str, Sequence[str]],
    key: str,
    column: str,
    names: Sequence[str],
    known: Sequence[str] = (),
) -> list[str]:
    """Return the value of a column for each class or file, all of which the table names, and no others.

    It may name one again with the same value. `known` are the possible values; none allows all.
    """
    value_of: dict[str, str] = {}
    pairs = list(zip(map(composed, table[key]), table[column], strict=True))
    _raise_if_any(
        f"{path}: {key} {name!r} is in {value_of[name]!r} and in {value!r}; name it once"
        for name, value in pairs
        if value_of.setdefault(name, value) != value
    )
    _raise_if_any(
        f"{path}: {key} {name!r} has the split {value!r}; known are {', '.join(known)}"
        + ("; queries need a column file" if value in _PARTS else "")
        for name, value in value_of.items()
        if known and value not in known
    )
    missing = [name for name in names if composed(name) not in value_of]
    others = sorted(value_of.keys() - set(map(composed, names)))
    faults = [f"{path}: names the {key} {name!r}, which is not there; correct or remove the line" for name in others]
    if missing:
        found, left = (
            f"{len(names) - len(missing):,} of {counted(len(names), key)}",
            named(key, missing, "without a split"),
        )
        faults = [f"{path}: names {found}, which leaves {left}; give one to every {key}", *faults]
    _raise_if_any(faults)
    return [value_of[composed(name)] for name in names]


def _raise_if_any(faults: Iterable[str]) -> None:
    if found := list(faults):
        raise DataError(*found)


def _training_classes(path: Path, listing: ImageListing, parts: NDArray[np.str_]) -> NDArray[np.bool_]:
    is_training = parts == "train"
    trained, tested = (
        np.bincount(listing.labels[side], minlength=listing.n_classes) > 0 for side in (is_training, ~is_training)
    )
    _raise_if_any(
        f"{path}: class {listing.class_names[rank]!r} is in train and in test; MLRC tests on classes that no training "
        "sees, so every class must be on one side"
        for rank in np.flatnonzero(trained & tested)
    )
    return trained


def _queries(path: Path, parts: NDArray[np.str_]) -> NDArray[np.bool_] | None:
    used = set(parts.tolist()) - {"train"}
    if used <= {"test"}:
        return None
    if "test" in used:
        raise DataError(f"{path}: has test beside query or gallery; name every test file query or gallery")
    return np.asarray(parts == "query", dtype=np.bool_)
