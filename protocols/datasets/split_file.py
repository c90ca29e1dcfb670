"""A split of one's own: a file `split.csv` that says which classes, or which files, are for the test.

The file has a column `split` and a column `class` or `file`. With both, `class` is the class of each file in place of
its folder: where queries and gallery have folders of their own, a class is in several. The split is `train` or `test`;
for files it is also `query` or `gallery`, which divides the test images as In-Shop does. Training classes are ranked
before test classes, so that MLRC's four folds are cut from them as from the fixed training classes of other datasets
(specification, section 11). A class cannot be on both sides, since MLRC tests on classes that no training sees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import DataError, ImageListing
from protocols.datasets.listing import names_of, table_of
from results.names import why_unknown
from results.spec.data_choice import FEATURES

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
    table = _table(path)
    listing = _with_classes(path, table, listing)
    sample_parts = _sample_parts(path, table, listing)
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


@dataclass(frozen=True)
class _SplitTable:
    """The column that names the rows, `class` or `file`; the part of each name; the class of each file, if given."""

    key: str
    parts: Mapping[str, str]
    class_of: Mapping[str, str]


def _sample_parts(path: Path, table: _SplitTable, listing: ImageListing) -> NDArray[np.str_]:
    """The part of each sample: train, test, query or gallery."""
    parts = table.parts
    if table.key == "class":
        divided = [
            f"{path}: class {name!r} is {part}; queries need a column file"
            for name, part in parts.items()
            if part in ("query", "gallery")
        ]
        _raise_if_any([*divided, *_incomplete(path, "class", listing.class_names, parts)])
        return np.asarray([parts[name] for name in listing.class_names])[listing.labels]
    if not listing.names:
        raise DataError(f"{path}: has a column file, but the samples have no names; use a column class")
    _raise_if_any(_incomplete(path, "file", listing.names, parts))
    return np.asarray([parts[name] for name in listing.names])


def _with_classes(path: Path, table: _SplitTable, listing: ImageListing) -> ImageListing:
    """Give each file the class of the table, if it has classes of files; they are ranked by their names."""
    if not table.class_of:
        return listing
    if listing.dataset == FEATURES:
        raise DataError(f"{path}: has a column class, but the labels of the features are their classes; remove it")
    _raise_if_any(_incomplete(path, "file", listing.names, table.class_of))
    classes = sorted(set(table.class_of.values()))
    rank_of = {name: rank for rank, name in enumerate(classes)}
    labels = [rank_of[table.class_of[name]] for name in listing.names]
    return replace(listing, class_names=tuple(classes), labels=np.asarray(labels, dtype=np.int64))


def _table(path: Path) -> _SplitTable:
    columns, lines = table_of(path)
    if not columns & {"class", "file"} or "split" not in columns:
        raise DataError(f"{path}: its first line must name the column split, and the column class or the column file")
    key = "file" if "file" in columns else "class"
    parts: dict[str, str] = {}
    faults: list[str] = []

    def names_in(column: str) -> list[str]:
        return names_of(path, column, ((f"line {number}", line[column]) for number, line in lines))

    names = names_in(key)
    for name, (number, line) in zip(names, lines, strict=True):
        part = line["split"].strip()
        if part not in _PARTS:
            faults.append(f"{path}: line {number} has the split {part!r}; known are {', '.join(_PARTS)}")
        elif parts.setdefault(name, part) != part:
            faults.append(f"{path}: {key} {name!r} is in {parts[name]} and in {part}; name it once")
    class_of: dict[str, str] = {}
    for name, class_name in zip(names, names_in("class"), strict=True) if {"class", "file"} <= columns else ():
        if class_of.setdefault(name, class_name) != class_name:
            faults.append(f"{path}: file {name!r} is of class {class_of[name]!r} and of {class_name!r}; name it once")
    _raise_if_any(faults)
    return _SplitTable(key, parts, class_of)


def _raise_if_any(faults: Sequence[str]) -> None:
    if faults:
        raise DataError(*faults)


def _incomplete(path: Path, key: str, names: Sequence[str], parts: Mapping[str, str]) -> list[str]:
    """Name the classes or files that only the data or only the file has."""
    unnamed = [name for name in names if name not in parts]
    unknown = sorted(parts.keys() - set(names))
    lacking, unlike = f"{path}: does not name the {key}", f"{path}: names the {key}"
    return [
        *(f"{lacking} {name!r}; give every {key} a split{why_unknown(name, parts)}" for name in unnamed),
        *(
            f"{unlike} {name!r}, which is not there; correct or remove the line{why_unknown(name, names)}"
            for name in unknown
        ),
    ]


def _training_classes(
    path: Path, class_names: Sequence[str], labels: NDArray[np.int64], sample_parts: NDArray[np.str_]
) -> NDArray[np.bool_]:
    is_training = sample_parts == "train"
    trained = np.bincount(labels[is_training], minlength=len(class_names)) > 0
    tested = np.bincount(labels[~is_training], minlength=len(class_names)) > 0
    _raise_if_any(
        [
            f"{path}: class {class_names[rank]!r} is in train and in test; MLRC tests on classes that no training "
            "sees, so every class must be on one side"
            for rank in np.flatnonzero(trained & tested).tolist()
        ]
    )
    return trained


def _queries(path: Path, sample_parts: NDArray[np.str_]) -> NDArray[np.bool_] | None:
    used = set(sample_parts.tolist()) - {"train"}
    if used <= {"test"}:
        return None
    if "test" in used:
        raise DataError(f"{path}: has test beside query or gallery; name every test file query or gallery")
    return np.asarray(sample_parts == "query", dtype=np.bool_)
