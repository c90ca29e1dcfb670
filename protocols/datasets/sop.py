"""Stanford Online Products (Oh Song et al. 2016) in its official layout.

The lists are `Ebay_train.txt` and `Ebay_test.txt` (image_id class_id super_class_id path). The images lie in
`*_final/`. Both lists are pooled. The rank of a class is its id minus one, so that the classes of the training list
come first (specification, sections 1 and 2).
"""

from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, ImageListing
from protocols.datasets.listing import folder_with, lines_of, number_in, require, require_images

TRAIN, TEST = "Ebay_train.txt", "Ebay_test.txt"
_ARCHIVE = "Stanford_Online_Products.zip"
_HEADER = ["image_id", "class_id", "super_class_id", "path"]


def list_sop(root: Path) -> ImageListing:
    """List all images of Stanford Online Products."""
    folder = folder_with(root, TRAIN, "Stanford_Online_Products")
    if folder is None:
        raise DataError(f"{root}: no {TRAIN} here; give the unpacked Stanford_Online_Products folder with --data")
    require(folder, (TEST,), _ARCHIVE)
    train, test = _rows(folder / TRAIN), _rows(folder / TEST)
    training, tested = sorted({row[0] for row in train}), sorted({row[0] for row in test})
    if training and tested and training[-1] >= tested[0]:
        raise DataError(
            f"{folder / TEST}: class {tested[0]} is not above the classes of {TRAIN} (up to {training[-1]}), as "
            f"published; unpack {_ARCHIVE} again"
        )
    ids = training + tested
    names = tuple(path for _, path in train + test)
    require_images(folder, names, f"{TRAIN} and {TEST}")
    return ImageListing(
        "sop",
        folder,
        tuple(str(class_id) for class_id in ids),
        names,
        np.searchsorted(ids, [class_id for class_id, _ in train + test]).astype(np.int64),
        trainval_classes=len(training),
    )


def _rows(path: Path) -> list[tuple[int, str]]:
    rows = []
    header, *lines = list(lines_of(path, _ARCHIVE)) or [(1, "")]
    if header[1].split() != _HEADER:
        raise DataError(f"{path}, line {header[0]}: expected the header `{' '.join(_HEADER)}`, found {header[1]!r}")
    for number, line in lines:
        # The rest of the line is the path, which may have spaces.
        fields = line.split(maxsplit=3)
        if len(fields) != 4:
            raise DataError(f"{path}, line {number}: expected `{' '.join(_HEADER)}`, found {line!r}")
        rows.append((number_in(path, fields[1], "class number"), fields[3].strip()))
    return rows
