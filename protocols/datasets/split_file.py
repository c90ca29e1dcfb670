"""A split of one's own: a file `split.csv` that says which classes, or which files, are for the test.

The file has a column `split` and either a column `class` or a column `file`. The split is `train` or `test`; for files
it is also `query` or `gallery`, which divides the test images as In-Shop does. Training classes are ranked before test
classes, so that MLRC's four folds are cut from them as from the fixed training classes of other datasets
(specification, section 11). A class cannot be on both sides, since MLRC tests on classes that no training sees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import DataError, ImageListing
from protocols.datasets.listing import names_of, table_of
from results.names import why_unknown

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
    sample_parts = _sample_parts(path, listing)
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


def _sample_parts(path: Path, listing: ImageListing) -> NDArray[np.str_]:
    """The part of each sample: train, test, query or gallery."""
    key, parts = _parts(path)
    if key == "class":
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


def _parts(path: Path) -> tuple[str, Mapping[str, str]]:
    """Read the file: the name of its first column, `class` or `file`, and the part of each class or file."""
    columns, lines = table_of(path)
    keys = columns & {"class", "file"}
    if len(keys) != 1 or "split" not in columns:
        raise DataError(f"{path}: its first line must name the column split, and the column class or the column file")
    (key,) = keys
    parts: dict[str, str] = {}
    faults: list[str] = []
    names = names_of(path, key, ((f"line {number}", line[key]) for number, line in lines))
    for name, (number, line) in zip(names, lines, strict=True):
        part = line["split"].strip()
        if part not in _PARTS:
            faults.append(f"{path}: line {number} has the split {part!r}; known are {', '.join(_PARTS)}")
        elif parts.setdefault(name, part) != part:
            faults.append(f"{path}: {key} {name!r} is in {parts[name]} and in {part}; name it once")
    _raise_if_any(faults)
    return key, parts


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
