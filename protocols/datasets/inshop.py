"""In-Shop Clothes Retrieval (Liu et al. 2016, DeepFashion) in its official layout and in the layout of mirrors.

`list_eval_partition.txt` lies at the root or in `Eval/`. It has the number of images, a header, and lines `image_name
item_id evaluation_status`, where the status is train, query or gallery. Images lie in `Img/img/` or `img/`. Items are
classes. In the order of the ranks, training items come before test items; both are sorted by id (specification,
section 11.3).
"""

from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, ImageListing
from protocols.datasets.listing import lines_of, require_images

LIST = "list_eval_partition.txt"
_UNPACKED = "In-shop Clothes Retrieval Benchmark"
_HEADER = ["image_name", "item_id", "evaluation_status"]


def list_inshop(root: Path) -> ImageListing:
    """List all images of In-Shop."""
    path = _list_in(root)
    rows = _rows(path)
    train = {item for _, item, status in rows if status == "train"}
    test = {item for _, item, status in rows if status != "train"}
    if both := sorted(train & test):
        raise DataError(f"{path}: item {both[0]} is in the training part and in the test part; download the list again")
    items = (*sorted(train), *sorted(test))
    rank_of = {item: rank for rank, item in enumerate(items)}
    names = tuple(name for name, *_ in rows)
    images = _images_of(path, root)
    require_images(images, names, LIST)
    return ImageListing(
        "inshop",
        images,
        items,
        names,
        np.asarray([rank_of[item] for _, item, _ in rows], dtype=np.int64),
        trainval_classes=len(train),
        is_query=np.asarray([status == "query" for *_, status in rows], dtype=np.bool_),
    )


def _list_in(root: Path) -> Path:
    for folder in (root, root / _UNPACKED):
        for path in (folder / "Eval" / LIST, folder / LIST):
            if path.is_file():
                return path
    raise DataError(f"{root}: no Eval/{LIST} and no {LIST} here; put the publisher's list there")


def _images_of(path: Path, root: Path) -> Path:
    base = path.parent.parent if path.parent.name == "Eval" else path.parent
    for folder in (base / "Img", base):
        if (folder / "img").is_dir():
            return folder
    raise DataError(f"{root}: no Img/img and no img here; unpack img.zip into {base / 'Img'}")


def _rows(path: Path) -> list[tuple[str, str, str]]:
    """Path, item and status of each image."""
    lines = list(lines_of(path, "the publisher's list"))
    if len(lines) < 2 or not lines[0][1].strip().isdigit() or lines[1][1].split() != _HEADER:
        raise DataError(f"{path}: expected the number of images, then the header `{' '.join(_HEADER)}`")
    rows = []
    for number, line in lines[2:]:
        fields = line.split()
        if len(fields) != 3 or fields[2] not in ("train", "query", "gallery"):
            raise DataError(
                f"{path}, line {number}: expected `image_name item_id` and train, query or gallery, found {line!r}"
            )
        rows.append((fields[0], fields[1], fields[2]))
    return rows
