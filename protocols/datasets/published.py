"""The lists of images in the layouts of publishers, except Cars196 (`cars196`). Ranks are those of the specification,
sections 1, 2 and 11.3.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protocols.datasets.listing import DataError, ImageListing, half_of

_STATUSES = ("train", "query", "gallery")


def list_cub200(root: Path) -> ImageListing:
    """List all images of CUB-200-2011 (Wah et al. 2011), whose classes are ranked by their ids."""
    folder = _folder_with(root, "images.txt", "CUB_200_2011", "give the unpacked CUB_200_2011 folder with --data")
    archive = "CUB_200_2011.tgz"
    name_of, image_of, class_of = (
        dict(rows_of(folder / file, f"id {value}", archive))
        for file, value in (("classes.txt", "name"), ("images.txt", "path"), ("image_class_labels.txt", "class"))
    )
    ids = sorted(name_of, key=lambda key: _number(folder / "classes.txt", key))
    labels = [class_of.get(image, "") for image in image_of]
    if unknown := next((image for image, key in zip(image_of, labels, strict=True) if key not in name_of), None):
        source = folder / "image_class_labels.txt"
        raise DataError(f"{source}: image {unknown} ({image_of[unknown]}) has no class of classes.txt")
    names = [name_of[key] for key in ids]
    return listed("cub200", folder / "images", list(image_of.values()), labels, ids, half_of(len(ids)), names)


def list_sop(root: Path) -> ImageListing:
    """List all images of Stanford Online Products (Oh Song et al. 2016): both lists, training classes first."""
    files = ("Ebay_train.txt", "Ebay_test.txt")
    archive, fields = "Stanford_Online_Products.zip", "image_id class_id super_class_id path"
    folder = _folder_with(root, files[0], "Stanford_Online_Products", "give the unpacked folder with --data")
    parts = [rows_of(folder / file, fields, archive, 1) for file in files]
    train, test = ([_number(folder / file, row[1]) for row in part] for file, part in zip(files, parts, strict=True))
    images = [row[3] for part in parts for row in part]
    order, trainval = _training_first(folder / files[1], train, test)
    return listed("sop", folder, images, train + test, order, trainval)


def list_inshop(root: Path) -> ImageListing:
    """List all images of In-Shop Clothes Retrieval (Liu et al. 2016, DeepFashion); items are classes."""
    file = "list_eval_partition.txt"
    folders = (root, root / "In-shop Clothes Retrieval Benchmark")
    path = next((p for folder in folders for p in (folder / "Eval" / file, folder / file) if p.is_file()), None)
    if path is None:
        raise DataError(f"{root}: no Eval/{file} and no {file} here; put the publisher's list there")
    base = path.parent.parent if path.parent.name == "Eval" else path.parent
    images = next((folder for folder in (base / "Img", base) if (folder / "img").is_dir()), None)
    if images is None:
        raise DataError(f"{root}: no Img/img and no img here; unpack img.zip into {base / 'Img'}")
    rows = rows_of(path, "image_name item_id evaluation_status", "the publisher's list", 2)
    if wrong := next((row for row in rows if row[2] not in _STATUSES), None):
        raise DataError(
            f"{path}: image {wrong[0]} is {wrong[2]!r}, not {', '.join(_STATUSES)}; download the list again"
        )
    names, items = [row[0] for row in rows], [row[1] for row in rows]
    order, trainval = _training_first(
        path, [row[1] for row in rows if row[2] == "train"], [row[1] for row in rows if row[2] != "train"]
    )
    is_query = np.asarray([row[2] == "query" for row in rows], dtype=np.bool_)
    return listed("inshop", images, names, items, order, trainval, is_query=is_query)


def rows_of(path: Path, fields: str, archive: str, header_lines: int = 0) -> list[list[str]]:
    """Return the fields of each line of a publisher's list that is not empty. The last field may have spaces.

    The last of the header's lines, if there are any, names the fields. Raises DataError unless all lines are complete,
    and their first fields differ.
    """
    names = fields.split()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DataError(f"{path.parent}: {path.name} is missing; unpack {archive} again") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8; unpack {archive} again") from error
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    header, lines = lines[:header_lines], lines[header_lines:]
    if not lines or (header and header[-1][1].split() != names):
        raise DataError(f"{path}: expected the header `{fields}` in line {header_lines}, and images after it")
    rows = [line.split(maxsplit=len(names) - 1) for _, line in lines]
    if wrong := next((line for line, row in zip(lines, rows, strict=True) if len(row) != len(names)), None):
        raise DataError(f"{path}, line {wrong[0]}: expected `{fields}`, found {wrong[1]!r}; unpack {archive} again")
    _check_named_once(path, names[0], [row[0] for row in rows])
    return rows


def listed(
    name: str,
    root: Path,
    images: Sequence[str],
    keys: Sequence[Any],
    order: Sequence[Any],
    trainval: int,
    class_names: Sequence[str] | None = None,
    **more: Any,
) -> ImageListing:
    """List images with the keys of their classes, which are ranked in the given order; all images must exist once."""
    _check_named_once(root, "image", images)
    if missing := [root / image for image in images if not (root / image).is_file()]:
        raise DataError(*(f"{path}: named by the publisher but missing; unpack the archive again" for path in missing))
    rank_of = {key: rank for rank, key in enumerate(order)}
    labels = np.asarray([rank_of[key] for key in keys], dtype=np.int64)
    classes = tuple(map(str, order)) if class_names is None else tuple(class_names)
    return ImageListing(name, root, classes, tuple(images), labels, trainval, **more)


def _check_named_once(place: Path, what: str, names: Sequence[str]) -> None:
    if twice := next((name for name, count in Counter(names).items() if count > 1), None):
        raise DataError(f"{place}: {what} {twice} is named twice; unpack the publisher's archive again")


def _training_first(path: Path, train: Sequence[Any], test: Sequence[Any]) -> tuple[list[Any], int]:
    """Sort the classes of both parts, those of training first; return them and the number of those of training."""
    training, tested = sorted(set(train)), sorted(set(test))
    if both := sorted({*training} & {*tested}):
        raise DataError(f"{path}: class {both[0]} is in the training part too; unpack the publisher's lists again")
    return training + tested, len(training)


def _folder_with(root: Path, marker: str, unpacked: str, remedy: str) -> Path:
    """Return the folder that contains `marker`: `root`, or the archive's folder `unpacked` in it."""
    for folder in (root, root / unpacked):
        if (folder / marker).exists():
            return folder
    raise DataError(f"{root}: no {marker} and no {unpacked}/{marker} here; {remedy}")


def _number(path: Path, text: str) -> int:
    if not text.isdecimal():
        raise DataError(f"{path}: {text!r} is not a class number")
    return int(text)
