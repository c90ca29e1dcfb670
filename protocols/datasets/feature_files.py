"""Features without images: a folder with `features.npy`, and with labels in `labels.csv` or `labels.npy`.

`features.npy` (n, c) is float16 or float32. It is mapped into memory and read in parts, never copied as a whole.
`labels.csv` has a header with a column `label`, the class of each row, and optionally a column `file`, its name.
`labels.npy` (n,) has whole numbers or texts. If there are both, `labels.csv` is read. Classes are ranked by number if
all labels are whole numbers, else in alphabetical order.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import DataError, DataRequest, Dataset, ImageListing, check_listing
from protocols.datasets.listing import root_of, table_of
from protocols.datasets.split_file import with_split
from protocols.features.feature_rows import LabelledFeatures, PackedFeatures
from protocols.progress import Progress
from protocols.verified_files import FileRecord, record_of, set_damaged_aside, stamp_of
from results.spec.data_choice import FEATURES
from results.values import fingerprint_of
from results.whole_files import write_whole

FEATURES_FILE, LABELS_TABLE, LABELS_FILE = "features.npy", "labels.csv", "labels.npy"
_PART_BYTES = 2**26


def open_features(request: DataRequest) -> Dataset:
    """Open a folder of features.

    The first look reads and checks the whole file. Its hash is kept in the cache, so later looks read only the labels
    as long as the file stays the same in size, times of change and its number in the file system.
    """
    root = root_of(request, f"the folder with {FEATURES_FILE} and {LABELS_TABLE} or {LABELS_FILE}").resolve()
    shape = _shape(root / FEATURES_FILE)
    given, names = _given_labels(root, shape[0])
    class_names, labels = _ranked(given)
    listing = ImageListing(FEATURES, root, class_names, names, labels, len(class_names) - len(class_names) // 2)
    listing = with_split(listing, request.split)
    check_listing(listing, "row")
    content, record = _content(root / FEATURES_FILE, request.cache, request.progress)
    identity: list[Any] = [listing.class_names, hashlib.sha256(listing.labels.tobytes()).hexdigest(), names, content]
    if listing.is_split_given:
        queries = None if listing.is_query is None else listing.is_query.tolist()
        identity.append({"trainval_classes": listing.trainval_classes, "queries": queries})
    return Dataset(
        FEATURES,
        listing.class_names,
        LabelledFeatures(PackedFeatures(root / FEATURES_FILE, record), np.arange(shape[0]), listing.labels),
        fingerprint_of(identity),
        trainval_classes=listing.trainval_classes,
        is_query=listing.is_query,
        names=names,
        is_split_given=listing.is_split_given,
    )


def _loaded(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise DataError(f"{path}: no such file; write it with numpy.save")
    try:
        values: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not an .npy file of numbers ({error}); write it with numpy.save") from error
    return values


def _shape(path: Path) -> tuple[int, int]:
    values = _loaded(path)
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"{path}: has the shape {values.shape}; it needs one row per image and one column per feature")
    if values.dtype not in (np.float16, np.float32):
        raise DataError(f"{path}: holds {values.dtype}; convert it to float32 or float16 with astype")
    return (len(values), values.shape[1])


def _given_labels(root: Path, count: int) -> tuple[Sequence[Any], tuple[str, ...]]:
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
    for number, line in enumerate(lines, start=2):
        if not (line["label"] or "").strip():
            raise DataError(f"{path}: line {number} has no label; give one to every row")
    names = tuple(line["file"] or "" for line in lines) if "file" in columns else ()
    return [line["label"].strip() for line in lines], names


def _from_array(path: Path) -> list[Any]:
    values = _loaded(path)
    if values.ndim != 1:
        raise DataError(f"{path}: has the shape {values.shape}; it needs one label per row of {FEATURES_FILE}")
    if values.dtype.kind not in "iuU":
        raise DataError(f"{path}: holds {values.dtype}; labels are whole numbers or texts")
    labels: list[Any] = values.tolist()
    return labels


def _ranked(given: Sequence[Any]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    texts = [str(label) for label in given]
    distinct = set(texts)
    numbers = all(text.isascii() and text.removeprefix("-").isdigit() for text in distinct)
    # Ties such as 1 and 01 are ordered by text.
    class_names = sorted(distinct, key=lambda text: (int(text) if numbers else 0, text))
    ranks = {name: rank for rank, name in enumerate(class_names)}
    return tuple(class_names), np.asarray([ranks[text] for text in texts], dtype=np.int64)


def _content(path: Path, cache: Path, progress: Progress | None) -> tuple[str, FileRecord]:
    """Return the hash of the features and the record of their file, from the cache if the file is unchanged.

    The first look checks every value.
    """
    note = cache / f"features-file-{fingerprint_of(str(path))}.json"
    stamp = stamp_of(path)
    if note.exists():
        try:
            known = json.loads(note.read_bytes())
            if known["stamp"] == stamp and "hash" in known:
                return str(known["content"]), {"hash": str(known["hash"]), "stamp": stamp}
        except (OSError, ValueError, KeyError, TypeError):
            set_damaged_aside(note, "the note about the features")
    content, record = _checked_hash(path, progress), record_of(path)
    if record["stamp"] != stamp:
        raise DataError(f"{path}: changed while it was read; run the same command again")
    write_whole(note, json.dumps({**record, "content": content}))
    return content, record


def _checked_hash(path: Path, progress: Progress | None) -> str:
    values = _loaded(path)
    digest = hashlib.sha256(f"{values.dtype} {values.shape}".encode())
    part = max(1, _PART_BYTES // (values.shape[1] * values.itemsize))
    for first in range(0, len(values), part):
        rows = np.ascontiguousarray(values[first : first + part])
        finite = np.isfinite(rows)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise DataError(
                f"{path}: row {first + row}, column {column} is {rows[row, column]}; remove the row, or compute its "
                "features again"
            )
        digest.update(rows.data)
        if progress:
            progress(min(first + part, len(values)), len(values))
    return digest.hexdigest()
