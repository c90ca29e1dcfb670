"""Features without images: a folder with `features.npy`, and with labels in `labels.csv` or `labels.npy`.

`features.npy` (n, c) is float16 or float32. It is read once, in parts, into a copy in the cache that is named by its
content. So a run keeps the features that it started with, whatever becomes of the file.
`labels.csv` has a header with a column `label`, the class of each row, and optionally a column `file`, its name.
`labels.npy` (n,) has whole numbers or texts. If there are both, `labels.csv` is read. Blanks around a label do not
count. Classes are ranked by number if all labels are whole numbers, else in alphabetical order.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from protocols.datasets.dataset import DataError, DataRequest, Dataset, ImageListing, check_listing
from protocols.datasets.listing import names_of, root_of, table_of
from protocols.datasets.split_file import with_split
from protocols.features.feature_rows import (
    FEATURES_FILE,
    LabelledFeatures,
    PackedFeatures,
    describe_features,
    kept_features,
)
from protocols.features.npy_file import NpyFile, NpyFileError, open_npy
from protocols.progress import Progress
from protocols.verified_files import set_damaged_aside, stamp_of
from results.spec.data_choice import FEATURES
from results.values import fingerprint_of
from results.whole_files import ChangedFileError, make_folder, put_in_place, write_whole

LABELS_TABLE, LABELS_FILE = "labels.csv", "labels.npy"
_PART_BYTES = 2**26


def open_features(request: DataRequest) -> Dataset:
    """Open a folder of features.

    The first look checks every value and copies the file into the cache. Later looks read only the labels as long as
    the file stays the same in size, times of change and its number in the file system.
    """
    root = root_of(request, f"the folder with {FEATURES_FILE} and {LABELS_TABLE} or {LABELS_FILE}").resolve()
    count = _opened_features(root / FEATURES_FILE).shape[0]
    given, names = _given_labels(root, count)
    class_names, labels = _ranked(given)
    listing = ImageListing(FEATURES, root, class_names, names, labels, len(class_names) - len(class_names) // 2)
    listing = with_split(listing, request.split)
    check_listing(listing, "row")
    content, features = _kept(root / FEATURES_FILE, request.cache, request.progress)
    if len(features) != count:
        raise _changed_meanwhile(root / FEATURES_FILE)
    identity: list[Any] = [listing.class_names, hashlib.sha256(listing.labels.tobytes()).hexdigest(), names, content]
    if listing.is_split_given:
        queries = None if listing.is_query is None else listing.is_query.tolist()
        identity.append({"trainval_classes": listing.trainval_classes, "queries": queries})
    return Dataset(
        FEATURES,
        listing.class_names,
        LabelledFeatures(features, np.arange(count), listing.labels),
        fingerprint_of(identity),
        trainval_classes=listing.trainval_classes,
        is_query=listing.is_query,
        names=names,
        is_split_given=listing.is_split_given,
    )


def _opened(path: Path) -> NpyFile:
    try:
        return open_npy(path)
    except NpyFileError as error:
        raise DataError(f"{path}: {error}; write it with numpy.save") from error


def _opened_features(path: Path) -> NpyFile:
    file = _opened(path)
    if len(file.shape) != 2 or 0 in file.shape:
        raise DataError(f"{path}: has the shape {file.shape}; it needs one row per image and one column per feature")
    if file.dtype not in (np.float16, np.float32):
        raise DataError(f"{path}: holds {file.dtype}; convert it to float32 or float16 with astype")
    return file


def _given_labels(root: Path, count: int) -> tuple[Sequence[str], tuple[str, ...]]:
    table = root / LABELS_TABLE
    path = table if table.exists() else root / LABELS_FILE
    if not path.exists():
        raise DataError(f"{root}: has neither {LABELS_TABLE} nor {LABELS_FILE}; add the label of each row")
    labels, names = _from_table(path) if path == table else (_from_array(path), ())
    if len(labels) != count:
        raise DataError(f"{path}: has {len(labels):,} labels for {count:,} rows of {FEATURES_FILE}; give one per row")
    return labels, names


def _from_table(path: Path) -> tuple[list[str], tuple[str, ...]]:
    columns, lines = table_of(path)
    if "label" not in columns:
        raise DataError(f"{path}: its first line must name the column label, and optionally the column file")

    def names_in(column: str) -> list[str]:
        return names_of(path, column, ((f"line {number}", line[column]) for number, line in lines))

    return names_in("label"), tuple(names_in("file")) if "file" in columns else ()


def _from_array(path: Path) -> list[str]:
    file = _opened(path)
    if len(file.shape) != 1:
        raise DataError(f"{path}: has the shape {file.shape}; it needs one label per row of {FEATURES_FILE}")
    if file.dtype.kind not in "iuU":
        raise DataError(f"{path}: holds {file.dtype}; labels are whole numbers or texts")
    try:
        values = file.take(np.arange(file.shape[0]))
    except ChangedFileError as error:
        raise _changed_meanwhile(path) from error
    values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind == "U" and values.view(np.uint32).max(initial=0) > sys.maxunicode:
        raise DataError(f"{path}: holds characters that do not exist; write it again with numpy.save")
    return names_of(path, "label", ((f"row {row}", str(value)) for row, value in enumerate(values.tolist())))


def _ranked(texts: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    distinct = set(texts)
    numbers = all(text.isascii() and text.removeprefix("-").isdigit() for text in distinct)
    # Ties such as 1 and 01 are ordered by text.
    class_names = sorted(distinct, key=lambda text: (int(text) if numbers else 0, text))
    ranks = {name: rank for rank, name in enumerate(class_names)}
    return tuple(class_names), np.asarray([ranks[text] for text in texts], dtype=np.int64)


def _kept(path: Path, cache: Path, progress: Progress | None) -> tuple[str, PackedFeatures]:
    """Return the hash of the features and their copy in the cache, which is made by the first look."""
    note = cache / f"features-file-{fingerprint_of(str(path))}.json"
    make_folder(cache)
    with FileLock(note.with_suffix(".lock")):
        stamp = stamp_of(path)
        content = _noted(note, stamp)
        features = None if content is None else kept_features(_folder(cache, content))
        if content is None or features is None:
            content, features = _copied(path, stamp, note.with_suffix(".partial"), progress)
            write_whole(note, json.dumps({"stamp": stamp, "content": content}))
    return content, features


def _folder(cache: Path, content: str) -> Path:
    return cache / f"features-file-{content}"


def _noted(note: Path, stamp: str) -> str | None:
    """The hash of the features that a file with this stamp holds; None if it is not known."""
    if not note.exists():
        return None
    try:
        known = json.loads(note.read_bytes())
        return str(known["content"]) if known["stamp"] == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        set_damaged_aside(note, "the note about the features")
        return None


def _copied(path: Path, stamp: str, partial: Path, progress: Progress | None) -> tuple[str, PackedFeatures]:
    """Copy a file of features with this stamp into the cache, unless its content is there already."""
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        content = _copy(_opened_features(path), partial / FEATURES_FILE, progress)
        if stamp_of(path) != stamp:
            raise _changed_meanwhile(path)
        folder = _folder(partial.parent, content)
        features = kept_features(folder)
        if features is None:
            describe_features(partial, {"content": content})
            put_in_place(partial, folder)
            features = kept_features(folder)
    except (ChangedFileError, FileNotFoundError) as error:
        raise _changed_meanwhile(path) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    assert features is not None
    return content, features


def _copy(features: NpyFile, to: Path, progress: Progress | None) -> str:
    """Check every value, write the rows one after another, and return the hash of their type, shape and values."""
    n, width = features.shape
    digest = hashlib.sha256(f"{features.dtype} {features.shape}".encode())
    size = max(1, _PART_BYTES // (width * features.dtype.itemsize))
    with to.open("wb") as file:
        header = {"descr": features.dtype.str, "fortran_order": False, "shape": features.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, n, size):
            rows = features.take(np.arange(first, min(first + size, n)))
            finite = np.isfinite(rows)
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                raise DataError(
                    f"{features.path}: row {first + row}, column {column} is {rows[row, column]}; remove the row, or "
                    "compute its features again"
                )
            digest.update(rows.data)
            file.write(rows.data)
            if progress:
                progress(first + len(rows), n)
    return digest.hexdigest()


def _changed_meanwhile(path: Path) -> DataError:
    return DataError(f"{path}: changed while it was read; run the same command again")
