"""Features without images: a folder with `features.npy`, and with labels in `labels.csv` or `labels.npy`.

`features.npy` (n, c) is float16 or float32. It is copied once into the cache, under a name with its content. So a run
keeps the features that it started with, whatever becomes of the file.
`labels.csv` has a header with a column `label`, the class of each row, and optionally a column `file`, its name.
`labels.npy` (n,) has whole numbers or texts. If there are both, `labels.csv` is read. Blanks around a label do not
count. Classes are ranked by number if all labels are whole numbers, else in alphabetical order.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.dataset import DataError, DataRequest, Dataset, ImageListing, check_listing
from protocols.datasets.listing import names_of, root_of, table_of
from protocols.datasets.split_file import with_split
from protocols.features.feature_rows import FEATURES_FILE, LabelledFeatures, PackedFeatures
from protocols.images.packing import cache_lock
from protocols.progress import Progress
from results.spec.data_choice import FEATURES
from results.values import fingerprint_of
from results.whole_files import whole_folder

LABELS_TABLE, LABELS_FILE = "labels.csv", "labels.npy"
_PART_BYTES = 2**26


def open_features(request: DataRequest) -> Dataset:
    """Open a folder of features. Every value is read; the file is copied into the cache if it is not there yet."""
    root = root_of(request, f"the folder with {FEATURES_FILE} and {LABELS_TABLE} or {LABELS_FILE}").resolve()
    rows = _rows(root / FEATURES_FILE)
    given, names = _given_labels(root, len(rows))
    class_names, labels = _ranked(given)
    listing = ImageListing(FEATURES, root, class_names, names, labels, len(class_names) - len(class_names) // 2)
    listing = with_split(listing, request.choice.split)
    check_listing(listing, "row")
    content = _content_hash(rows)
    features = _kept(root / FEATURES_FILE, rows, request.cache / f"features-file-{content}", request.progress)
    identity: list[Any] = [listing.class_names, hashlib.sha256(listing.labels.tobytes()).hexdigest(), names, content]
    if listing.is_split_given:
        queries = None if listing.is_query is None else listing.is_query.tolist()
        identity.append({"trainval_classes": listing.trainval_classes, "queries": queries})
    return Dataset(
        FEATURES,
        listing.class_names,
        LabelledFeatures(features, np.arange(len(rows)), listing.labels),
        fingerprint_of(identity),
        trainval_classes=listing.trainval_classes,
        is_query=listing.is_query,
        names=names,
        is_split_given=listing.is_split_given,
    )


def _loaded(path: Path) -> NDArray[Any]:
    """Map the array of an .npy file into memory."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; write it with numpy.save")
    try:
        array = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: not a whole .npy file ({_first_line(error)}); write it with numpy.save") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path}: an .npz archive, not an .npy file; write it with numpy.save")
    return array


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _rows(path: Path) -> NDArray[Any]:
    rows = _loaded(path)
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"{path}: has the shape {rows.shape}; it needs one row per image and one column per feature")
    if rows.dtype not in (np.float16, np.float32):
        raise DataError(f"{path}: holds {rows.dtype}; convert it to float32 or float16 with astype")
    return rows


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
    return names_of(path, "label", lines), tuple(names_of(path, "file", lines)) if "file" in columns else ()


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


def _ranked(texts: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    distinct = set(texts)
    numbers = all(text.isascii() and text.removeprefix("-").isdigit() for text in distinct)
    # Ties such as 1 and 01 are ordered by text.
    class_names = sorted(distinct, key=lambda text: (int(text) if numbers else 0, text))
    ranks = {name: rank for rank, name in enumerate(class_names)}
    return tuple(class_names), np.asarray([ranks[text] for text in texts], dtype=np.int64)


def _parts(rows: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The rows in order, in contiguous parts, each with the number of its first row."""
    size = max(1, _PART_BYTES // (rows.shape[1] * rows.dtype.itemsize))
    for first in range(0, len(rows), size):
        yield first, np.ascontiguousarray(rows[first : first + size])


def _content_hash(rows: NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{rows.dtype} {rows.shape}".encode())
    for _, part in _parts(rows):
        digest.update(part.data)
    return digest.hexdigest()


def _kept(path: Path, rows: NDArray[Any], folder: Path, progress: Progress | None) -> PackedFeatures:
    """Check every value and copy the rows into a folder of the cache, unless they are there."""
    with cache_lock(folder):
        if not folder.exists():
            with whole_folder(folder) as partial:
                _copy(path, rows, partial / FEATURES_FILE, progress)
    return PackedFeatures(folder / FEATURES_FILE)


def _copy(path: Path, rows: NDArray[Any], to: Path, progress: Progress | None) -> None:
    copy = np.lib.format.open_memmap(to, mode="w+", dtype=rows.dtype, shape=rows.shape)
    for first, part in _parts(rows):
        _check_finite(path, part, first)
        copy[first : first + len(part)] = part
        if progress:
            progress(first + len(part), len(rows))
    copy.flush()


def _check_finite(path: Path, part: NDArray[Any], first: int) -> None:
    if (finite := np.isfinite(part)).all():
        return
    row, column = np.argwhere(~finite)[0]
    raise DataError(
        f"{path}: row {first + row}, column {column} is {part[row, column]}; remove the row, or compute its features "
        "again"
    )
