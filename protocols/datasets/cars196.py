"""Cars196 (Krause et al. 2013) in its three common layouts.

The layouts are: `cars_annos.mat` beside `car_ims/`; `cars_train/` and `cars_test/`, each with an annotation file of the
devkit; `train/` and `test/` with one folder per class name, as on mirrors. The rank of a class is its official id minus
one. The official training and test images are pooled (specification, section 1).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from protocols.datasets.folder import walk
from protocols.datasets.listing import DataError, ImageListing, half_of
from protocols.datasets.published import listed

CLASS_NAMES = tuple(Path(__file__).with_name("cars196_names.txt").read_text(encoding="utf-8").splitlines())
"""The name of class id i at position i - 1: the order of `class_names` in the publisher's files.

Makes are in alphabetical order, but models within a make are not, so the ids cannot be derived from class folders.
"""

_PARTS = (("cars_train", "cars_train_annos.mat"), ("cars_test", "cars_test_annos_withlabels.mat"))


def list_cars196(root: Path) -> ImageListing:
    """List all images of Cars196, and the classes that have one."""
    if (root / "car_ims").is_dir():
        return _listing(root, _annotations(root, "cars_annos.mat", "relative_im_path"))
    if any((root / folder).is_dir() for folder, _ in _PARTS):
        pairs = []
        for folder, file in _PARTS:
            # One mirror has the folder inside a folder of the same name.
            inner = f"{folder}/{folder}" if (root / folder / folder).is_dir() else folder
            pairs += [(f"{inner}/{image}", number) for image, number in _annotations(root, file, "fname")]
        return _listing(root, pairs)
    for place in (root, root / "car_data", root / "car_data" / "car_data"):
        if (place / "train").is_dir() or (place / "test").is_dir():
            return _listing(root, [pair for part in ("train", "test") for pair in _in_folders(root, place / part)])
    raise DataError(
        f"{root}: no car_ims (with cars_annos.mat), no cars_train and cars_test (with devkit) and no train and test "
        "(with a folder per class) here; give the folder that holds them with --data"
    )


def _listing(root: Path, pairs: Sequence[tuple[str, int]]) -> ImageListing:
    images, numbers = [image for image, _ in pairs], [number for _, number in pairs]
    order = sorted(set(numbers))
    names = [CLASS_NAMES[number - 1] for number in order]
    return listed("cars196", root, images, numbers, order, half_of(len(order)), names)


def _annotations(root: Path, file: str, field: str) -> list[tuple[str, int]]:
    """The image and the class id of every annotation; the publisher's flag `test` is ignored."""
    path = next((path for path in (root / "devkit" / file, root / file) if path.is_file()), None)
    if path is None:
        raise DataError(f"{root}: {file} is missing; put the publisher's file there or into {root / 'devkit'}")
    try:
        rows = np.atleast_1d(loadmat(path, squeeze_me=True)["annotations"])
        pairs = [(str(image), int(number)) for image, number in zip(rows[field], rows["class"], strict=True)]
    except (OSError, ValueError, KeyError, IndexError, TypeError, NotImplementedError, MatReadError) as error:
        raise DataError(
            f"{path}: no MATLAB file whose annotations have {field} and class; download it again"
        ) from error
    if wrong := next((pair for pair in pairs if not 1 <= pair[1] <= len(CLASS_NAMES)), None):
        raise DataError(f"{path}: image {wrong[0]} is of class {wrong[1]}, there are classes 1 to {len(CLASS_NAMES)}")
    return pairs


def _in_folders(root: Path, folder: Path) -> list[tuple[str, int]]:
    """Images with the class of their folder. They are named by path, since file names repeat in train and test."""
    if not folder.is_dir():
        raise DataError(
            f"{folder.parent}: {folder.name} is missing; both parts are needed, since the protocol pools them"
        )
    number_of = {_plain(name): number for number, name in enumerate(CLASS_NAMES, start=1)}
    tree = walk(folder)
    if unknown := next((f for f in tree.folders if len(f.parts) == 1 and _plain(f.name) not in number_of), None):
        raise DataError(f"{folder / unknown}: no class of Cars196; name the folder as published")
    return [((folder / path).relative_to(root).as_posix(), number_of[_plain(path.parts[0])]) for path in tree.images]


def _plain(name: str) -> str:
    """Letters and digits of a class name. Folder names differ in the others: `Ram C/V` is `Ram C-V` or `Ram C_V`."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
