"""Features without images: a folder with `features.npy`, and with labels in `labels.csv` or `labels.npy`.

`features.npy` (n, c) is float16 or float32. It is copied once into the cache, under a name with its content. So a run
keeps the features that it started with, whatever becomes of the file.
`labels.csv` has a header with a column `label`, the class of each row, and optionally a column `file`, its name.
`labels.npy` (n,) has whole numbers or texts. If there are both, `labels.csv` is read. Blanks around a label do not
count.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from protocols.datasets.dataset import DataRequest, Dataset
from protocols.datasets.listing import DataError, ImageListing, check_listing, composed, ranked, root_of
from protocols.datasets.split_file import SPLIT_FILE, table_of, with_split
from protocols.images.packing import Progress, cached
from protocols.images.samples import FEATURES_FILE, LabelledFeatures
from results.spec.data_choice import FEATURES
from results.values import fingerprint_of
from results.wording import counted

LABELS_TABLE, LABELS_FILE = "labels.csv", "labels.npy"
_PART_BYTES = 2**26
_NORMS = 1e-12, 1e19
"""Smallest and largest norm of a row. Others, such as zero, cannot be brought to length 1 in float32."""


def open_features(request: DataRequest) -> Dataset:
    """Open a folder of features. Every value is read; the file is copied into the cache if it is not there yet."""
    what = f"the folder with {FEATURES_FILE} and {LABELS_TABLE} or {LABELS_FILE}"
    root = root_of(FEATURES, request.choice.root, what).resolve()
    rows = _rows(root / FEATURES_FILE)
    given, names = _given_labels(root, len(rows))
    class_names, labels = ranked(given)
    listing = ImageListing(FEATURES, root, class_names, names, labels)
    listing = with_split(listing, request.choice.split)
    check_listing(listing, "row")
    content, hashes, constant = _looked_through(root / FEATURES_FILE, rows, request.progress)
    folder = request.cache / f"features-file-{content}"
    cached(folder, lambda partial: np.save(partial / FEATURES_FILE, np.ascontiguousarray(rows)))
    identity: list[Any] = [listing.class_names, hashlib.sha256(listing.labels.tobytes()).hexdigest(), names, content]
    if listing.is_split_given or listing.is_query is not None:
        queries = None if listing.is_query is None else listing.is_query.tolist()
        identity.append({"trainval_classes": listing.trainval_classes, "queries": queries})
    return Dataset(
        **vars(listing),
        images=LabelledFeatures(np.arange(len(rows)), listing.labels, folder / FEATURES_FILE),
        fingerprint=fingerprint_of(identity),
        hashes=hashes,
        constant=constant,
    )


def write_labels(dataset: Dataset, rows: NDArray[np.int64], folder: Path) -> None:
    """Write what belongs beside the features of the samples at positions (k,): names and classes, and a given split.

    `open_features` then reads the folder as the same classes in the same order, with the same queries and gallery.
    """
    labels = dataset.labels[rows]
    names = {"file": [dataset.names[row] for row in rows]} if dataset.names else {}
    classes = [dataset.class_names[label] for label in labels]
    pd.DataFrame(names | {"label": classes}).to_csv(folder / LABELS_TABLE, index=False)
    trains = (labels < dataset.trainval_classes) & dataset.are_test_classes_given
    if dataset.is_query is not None or trains.any():
        tests = "test" if dataset.is_query is None else np.where(dataset.is_query[rows], "query", "gallery")
        pd.DataFrame(names | {"split": np.where(trains, "train", tests)}).to_csv(folder / SPLIT_FILE, index=False)


def _loaded(path: Path) -> NDArray[Any]:
    """Map the array of an .npy file into memory."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; write it with numpy.save")
    try:
        array = np.load(path, mmap_mode="r")
    except Exception as error:  # Damaged content gives errors of all kinds.
        reason = str(error).partition("\n")[0]
        if "objects" in reason:
            text = "astype(str) makes texts of them, astype(int) whole numbers"
            raise DataError(f"{path}: holds Python objects, as pandas keeps texts; {text}") from error
        raise DataError(f"{path}: not a whole .npy file ({reason}); write it with numpy.save") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path}: an .npz archive, not an .npy file; write it with numpy.save")
    return np.asarray(array)  # Not a `memmap`, each slice of which costs several times as much.


def _rows(path: Path) -> NDArray[Any]:
    rows = _loaded(path)
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"{path}: has the shape {rows.shape}; it needs one row per image and one column per feature")
    if rows.dtype not in (np.float16, np.float32):
        raise DataError(f"{path}: holds {rows.dtype}; convert it to float32 or float16 with astype")
    return rows


def _given_labels(root: Path, count: int) -> tuple[Sequence[str], tuple[str, ...]]:
    table = root / LABELS_TABLE
    path = table if table.is_file() else root / LABELS_FILE
    if not path.exists():
        raise DataError(f"{root}: has neither {LABELS_TABLE} nor {LABELS_FILE}; add the label of each row")
    if path == table:
        columns = table_of(path, ("label", "file"))
        if "label" not in columns:
            raise DataError(f"{path}: its first line must name the column label, and optionally the column file")
        labels, names = columns["label"], tuple(columns.get("file", ()))
    else:
        labels, names = _from_array(path), ()
    if len(labels) != count:
        raise DataError(
            f"{path}: has {counted(len(labels), 'label')} for {counted(count, 'row')} of {FEATURES_FILE}; give one "
            "per row"
        )
    return [composed(label) for label in labels], names


def _from_array(path: Path) -> list[str]:
    labels = _loaded(path)
    if labels.ndim != 1:
        raise DataError(f"{path}: has the shape {labels.shape}; it needs one label per row of {FEATURES_FILE}")
    if labels.dtype.kind not in "iuU":
        raise DataError(f"{path}: holds {labels.dtype}; labels are whole numbers or texts")
    names = [str(value).strip() for value in labels.tolist()]
    if "" in names:
        raise DataError(f"{path}: row {names.index('')} has no label; give one to every row")
    return names


def _looked_through(
    path: Path, rows: NDArray[Any], progress: Progress | None
) -> tuple[str, NDArray[np.uint8], tuple[int, ...]]:
    """Read all values, whose norms must be usable; return the hash of all, those of the rows, and the constant rows."""
    digest = hashlib.sha256(f"{rows.dtype} {rows.shape}".encode())
    hashes, constant = list[bytes](), list[int]()
    size = max(1, _PART_BYTES // (rows.shape[1] * rows.dtype.itemsize))
    for first in range(0, len(rows), size):
        part = np.ascontiguousarray(rows[first : first + size])
        norms = np.linalg.norm(part.astype(np.float64), axis=1)
        if not (sound := (norms >= _NORMS[0]) & (norms <= _NORMS[1])).all():
            row = int(sound.argmin())
            raise DataError(
                f"{path}: row {first + row} has the norm {norms[row]:.2g}; scale all rows if they are too large or too "
                "small for float32, else remove the row, or compute its features again"
            )
        digest.update(part.data)
        hashes += [hashlib.sha256(row.data).digest() for row in part.astype(np.float32)]
        if rows.shape[1] > 1:
            constant += (first + np.flatnonzero((part == part[:, :1]).all(axis=1))).tolist()
        if progress:
            progress(first + len(part), len(rows))
    return digest.hexdigest(), np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, 32), tuple(constant)
