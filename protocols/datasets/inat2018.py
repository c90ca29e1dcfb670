"""iNaturalist 2018 (Van Horn et al. 2018) in the retrieval split of Smooth-AP's authors (Brown et al., ECCV 2020).

The competition's `train2018.json` and `val2018.json` give every image its category; the images lie in `train_val2018/`.
The authors' lists `Inaturalist_train_set1.txt` and `Inaturalist_test_set1.txt`, at the root or in
`Inat_dataset_splits/`, name one image per line, as the JSON files do. Each list has images of both files. Categories
are classes, named by their folders, such as `Aves/2761`. In the order of the ranks, training classes come before test
classes; both are sorted by the category's id.
"""

import json
from pathlib import Path, PurePosixPath

import numpy as np

from protocols.datasets.dataset import DataError, ImageListing
from protocols.datasets.listing import folder_with, lines_of, require, require_images

ANNOTATIONS = ("train2018.json", "val2018.json")
SPLITS_FOLDER = "Inat_dataset_splits"
TRAIN, TEST = "Inaturalist_train_set1.txt", "Inaturalist_test_set1.txt"
_ARCHIVE = f"{SPLITS_FOLDER}.zip"


def list_inat2018(root: Path) -> ImageListing:
    """List all images of iNaturalist 2018 that Smooth-AP's authors use."""
    folder = folder_with(root, TRAIN, SPLITS_FOLDER)
    if folder is None:
        raise DataError(
            f"{root}: no {SPLITS_FOLDER}/{TRAIN} and no {TRAIN} here; put the lists of Smooth-AP's authors there"
        )
    require(folder, (TEST,), _ARCHIVE)
    for file in ANNOTATIONS:
        require(root, (file,), f"{file}.tar.gz")
    category_of = {image: category for file in ANNOTATIONS for image, category in _categories(root / file).items()}
    train, test = (_listed(folder / file, category_of) for file in (TRAIN, TEST))
    training, tested = ({category_of[name] for name in names} for names in (train, test))
    if both := sorted(training & tested):
        raise DataError(f"{folder / TEST}: category {both[0]} is in {TRAIN} too; unpack {_ARCHIVE} again")
    names = train + test
    require_images(root, names, f"{TRAIN} and {TEST}")
    folder_of = {category_of[name]: "/".join(PurePosixPath(name).parts[-3:-1]) for name in names}
    order = [*sorted(training), *sorted(tested)]
    rank_of = {category: rank for rank, category in enumerate(order)}
    return ImageListing(
        "inat2018",
        root,
        tuple(folder_of[category] for category in order),
        tuple(names),
        np.asarray([rank_of[category_of[name]] for name in names], dtype=np.int64),
        trainval_classes=len(training),
        is_split_given=True,
    )


def _categories(path: Path) -> dict[str, int]:
    """The category's id of each image of one of the competition's files."""
    try:
        content = json.loads(path.read_bytes())
        category_of = {annotation["image_id"]: annotation["category_id"] for annotation in content["annotations"]}
        categories = {image["file_name"]: category_of[image["id"]] for image in content["images"]}
        if not all(isinstance(category, int) for category in categories.values()):
            raise TypeError("an id is no number")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(f"{path}: not the competition's annotations; unpack {path.name}.tar.gz again") from error
    return categories


def _listed(path: Path, category_of: dict[str, int]) -> list[str]:
    names = []
    for number, line in lines_of(path, _ARCHIVE):
        name = line.strip()
        if name not in category_of:
            raise DataError(f"{path}, line {number}: image {name!r} is not in {' or '.join(ANNOTATIONS)}")
        if (folder := PurePosixPath(name).parent.name) != str(category_of[name]):
            raise DataError(
                f"{path}, line {number}: image {name!r} lies in folder {folder!r}, but the annotations have category "
                f"{category_of[name]}; unpack the annotations and {_ARCHIVE} again"
            )
        names.append(name)
    return names
