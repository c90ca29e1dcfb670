"""CUB-200-2011 (Wah et al. 2011) in its official layout.

The files are `classes.txt` (id name), `images.txt` (id path), `image_class_labels.txt` (id class) and `images/`. The
rank of a class is its position in the order of the class ids, which is the alphabetical order of the class folders
(specification, section 1).
"""

from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, ImageListing
from protocols.datasets.listing import folder_with, lines_of, number_in, require, require_images

_ARCHIVE = "CUB_200_2011.tgz"


def list_cub200(root: Path) -> ImageListing:
    """List all images of CUB-200-2011."""
    folder = folder_with(root, "images.txt", "CUB_200_2011")
    if folder is None:
        raise DataError(f"{root}: no images.txt here; give the unpacked CUB_200_2011 folder with --data")
    require(folder, ("classes.txt", "image_class_labels.txt", "images"), _ARCHIVE)
    classes = _table(folder / "classes.txt")
    images = _table(folder / "images.txt")
    class_of = _table(folder / "image_class_labels.txt")
    ids = sorted(classes, key=lambda key: number_in(folder / "classes.txt", key, "class number"))
    rank_of = {class_id: rank for rank, class_id in enumerate(ids)}
    labels = []
    for image_id, path in images.items():
        class_id = class_of.get(image_id)
        if class_id not in rank_of:
            source = folder / "image_class_labels.txt"
            raise DataError(f"{source}: image {image_id} ({path}) has no class of classes.txt")
        labels.append(rank_of[class_id])
    require_images(folder / "images", tuple(images.values()), "images.txt")
    return ImageListing(
        "cub200",
        folder / "images",
        tuple(classes[key] for key in ids),
        tuple(images.values()),
        np.asarray(labels, dtype=np.int64),
        trainval_classes=len(ids) - len(ids) // 2,
    )


def _table(path: Path) -> dict[str, str]:
    """Values by key of a file with lines `key value`, in the order of the lines."""
    rows: dict[str, str] = {}
    for number, line in lines_of(path, _ARCHIVE):
        key, _, value = line.strip().partition(" ")
        if not value or key in rows:
            raise DataError(f"{path}, line {number}: expected `id value` with a new id, found {line!r}")
        rows[key] = value
    return rows
