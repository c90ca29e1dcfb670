"""Cars196 (Krause et al. 2013) in its three common layouts.

The layouts are: `cars_annos.mat` beside `car_ims/`; `cars_train/` and `cars_test/`, each with an annotation file of the
devkit; `train/` and `test/` with one folder per class name, as on mirrors. The rank of a class is its official id minus
one. The official training and test images are pooled (specification, section 1).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from protocols.datasets.dataset import DataError, ImageListing
from protocols.datasets.image_tree import walk
from protocols.datasets.listing import require_images

CLASS_NAMES = tuple(Path(__file__).with_name("cars196_names.txt").read_text(encoding="utf-8").splitlines())
"""The name of class id i at position i - 1: the order of `class_names` in the publisher's files.

Makes are in alphabetical order, but models within a make are not, so the ids cannot be derived from class folders.
"""

_TEST_LABELS = "cars_test_annos_withlabels.mat"


def list_cars196(root: Path) -> ImageListing:
    """List all images of Cars196, and the classes that have one."""
    if (root / "car_ims").is_dir():
        return _annotated(root)
    if (root / "cars_train").is_dir() or (root / "cars_test").is_dir():
        return _devkit(root)
    for folder in (root, root / "car_data", root / "car_data" / "car_data"):
        if (folder / "train").is_dir() or (folder / "test").is_dir():
            return _class_folders(root, folder)
    raise DataError(
        f"{root}: no car_ims (with cars_annos.mat), no cars_train and cars_test (with devkit) and no train and test "
        "(with a folder per class) here; give the folder that holds them with --data"
    )


def _listing(
    root: Path, names: tuple[str, ...], class_ids: Sequence[int], class_names: tuple[str, ...], named_in: str
) -> ImageListing:
    require_images(root, names, named_in)
    ids = np.unique(np.asarray(class_ids))
    return ImageListing(
        "cars196",
        root,
        tuple(class_names[class_id - 1] for class_id in ids),
        names,
        np.searchsorted(ids, class_ids).astype(np.int64),
        trainval_classes=len(ids) - len(ids) // 2,
    )


def _annotated(root: Path) -> ImageListing:
    path = root / "cars_annos.mat"
    if not path.is_file():
        raise DataError(f"{path}: missing; put the publisher's cars_annos.mat beside car_ims")
    content = _mat(path)
    names = _class_names(path, content)
    images, ids = _annotations(path, content, "relative_im_path", len(names))
    return _listing(root, images, ids, names, path.name)


def _devkit(root: Path) -> ImageListing:
    names = _official_names(root)
    images: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    for folder, file in (("cars_train", "cars_train_annos.mat"), ("cars_test", _TEST_LABELS)):
        if not (root / folder).is_dir():
            raise DataError(f"{root}: {folder} is missing; unpack {folder}.tgz again")
        path = next((candidate for candidate in (root / "devkit" / file, root / file) if candidate.is_file()), None)
        if path is None:
            raise DataError(f"{root / 'devkit' / file}: missing; put the publisher's {file} there or into {root}")
        part_names, part_ids = _annotations(path, _mat(path), "fname", len(names))
        # One mirror has the folder inside a folder of the same name.
        inner = f"{folder}/{folder}" if (root / folder / folder).is_dir() else folder
        images += tuple(f"{inner}/{name}" for name in part_names)
        ids += part_ids
    return _listing(root, images, ids, names, f"cars_train_annos.mat and {_TEST_LABELS}")


def _class_folders(root: Path, folder: Path) -> ImageListing:
    """Images with the class of their folder. They are named by path, since file names repeat in train and test."""
    names = _official_names(root)
    id_of = {_plain(name): number for number, name in enumerate(names, start=1)}
    images: list[str] = []
    ids: list[int] = []
    for part in ("train", "test"):
        if not (folder / part).is_dir():
            raise DataError(f"{folder}: {part} is missing; both parts are needed, since the protocol pools them")
        tree = walk(folder / part)
        unknown = [inner for inner in tree.folders if len(inner.parts) == 1 and _plain(inner.name) not in id_of]
        if unknown:
            raise DataError(f"{folder / part / unknown[0]}: no class of Cars196; name the folder as published")
        for path in tree.images:
            images.append((folder / part / path).relative_to(root).as_posix())
            ids.append(id_of[_plain(path.parts[0])])
    return _listing(root, tuple(images), ids, names, str(folder))


def _plain(name: str) -> str:
    """Letters and digits of a class name. Folder names differ in the others: `Ram C/V` is `Ram C-V` or `Ram C_V`."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _official_names(root: Path) -> tuple[str, ...]:
    """The class names of the publisher's file if there is one, else `CLASS_NAMES`."""
    for file in ("devkit/cars_meta.mat", "cars_meta.mat", "cars_annos.mat", "devkit/cars_annos.mat"):
        if (root / file).is_file():
            return _class_names(root / file, _mat(root / file))
    return CLASS_NAMES


def _mat(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = loadmat(path, squeeze_me=True)
    except (OSError, ValueError, NotImplementedError, MatReadError) as error:
        raise DataError(f"{path}: not a readable MATLAB file ({type(error).__name__}); download it again") from error
    return content


def _class_names(path: Path, content: dict[str, Any]) -> tuple[str, ...]:
    if "class_names" not in content:
        raise DataError(f"{path}: holds no class_names; download it again")
    return tuple(str(name) for name in np.atleast_1d(content["class_names"]))


def _annotations(
    path: Path, content: dict[str, Any], name: str, classes: int
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Field `name` and class id of every annotation; the publisher's flag `test` is ignored."""
    try:
        rows = np.atleast_1d(content["annotations"])
        images, ids = tuple(str(image) for image in rows[name]), tuple(int(class_id) for class_id in rows["class"])
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise DataError(f"{path}: its annotations have no {name} and class; download it again") from error
    if wrong := next((pair for pair in zip(images, ids, strict=True) if not 1 <= pair[1] <= classes), None):
        raise DataError(f"{path}: image {wrong[0]} is of class {wrong[1]}, there are classes 1 to {classes}")
    return images, ids
