"""CUB-200-2011 (Wah et al. 2011) in its official layout.

`classes.txt` (id name), `images.txt` (id path), `image_class_labels.txt` (id class), `images/`. A class's rank is its
place in the order of class ids, which is the alphabetical order of its folder (specification, section 1).
"""

from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, DataRequest, Dataset, ImageListing, from_listing

IMAGES, CLASSES = 11_788, 200
FIRST_HALF, SECOND_HALF = 5_864, 5_924
"""Images of the first and the last hundred classes."""


def list_cub200(root: Path, *, subset: bool = False) -> ImageListing:
    """The images that `images.txt` names; counts are checked against the published ones unless `subset`."""
    root = _with_lists(root)
    classes = _table(root / "classes.txt")
    images = _table(root / "images.txt")
    class_of = _table(root / "image_class_labels.txt")
    ids = sorted(classes, key=lambda key: _number(root / "classes.txt", key))
    rank_of = {class_id: rank for rank, class_id in enumerate(ids)}
    names, labels = [], []
    for image_id, path in images.items():
        class_id = class_of.get(image_id)
        if class_id not in rank_of:
            raise DataError(f"{root / 'image_class_labels.txt'}: image {image_id} ({path}) has no class of classes.txt")
        if not (root / "images" / path).is_file():
            raise DataError(f"{root / 'images' / path}: named in images.txt but missing; unpack the archive again")
        names.append(path)
        labels.append(rank_of[class_id])
    listing = ImageListing(
        "cub200",
        root / "images",
        tuple(classes[key] for key in ids),
        tuple(names),
        np.asarray(labels, dtype=np.int64),
    )
    if not subset:
        _check_counts(listing)
    return listing


def open_cub200(request: DataRequest) -> Dataset:
    """CUB-200-2011 where the request says it lies."""
    if request.root is None:
        raise DataError("cub200: say where CUB_200_2011 lies with --data FOLDER (the folder with images.txt)")
    return from_listing(list_cub200(request.root, subset=request.subset), request)


def _with_lists(root: Path) -> Path:
    """The folder with the lists: `root` itself or the CUB_200_2011 below it, as the archive unpacks."""
    for folder in (root, root / "CUB_200_2011"):
        if (folder / "images.txt").is_file():
            missing = [n for n in ("classes.txt", "image_class_labels.txt", "images") if not (folder / n).exists()]
            if missing:
                raise DataError(f"{folder}: {missing[0]} is missing; unpack CUB_200_2011.tgz again")
            return folder
    raise DataError(f"{root}: no images.txt here; give the unpacked CUB_200_2011 folder with --data")


def _table(path: Path) -> dict[str, str]:
    """Lines of `key value`, in their order."""
    rows: dict[str, str] = {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8; unpack CUB_200_2011.tgz again") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        key, _, value = line.strip().partition(" ")
        if not value or key in rows:
            raise DataError(f"{path}, line {number}: expected `id value` with an id of its own, found {line!r}")
        rows[key] = value
    return rows


def _number(path: Path, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DataError(f"{path}: {text!r} is not a class number") from None


def _check_counts(listing: ImageListing) -> None:
    n_images, n_classes = len(listing.names), len(listing.class_names)
    first = int((listing.labels < CLASSES // 2).sum())
    if (n_images, n_classes, first) != (IMAGES, CLASSES, FIRST_HALF):
        raise DataError(
            f"cub200: {n_images} images of {n_classes} classes ({first} in the first half), published are {IMAGES} "
            f"of {CLASSES} ({FIRST_HALF}); complete the download, or use --subset if this is a part on purpose"
        )
