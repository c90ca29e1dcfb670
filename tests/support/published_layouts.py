"""Small datasets in the layouts that publishers and mirrors use; not one real image."""

from pathlib import Path

import numpy as np
from scipy.io import savemat

from protocols.datasets.published import CAR_NAMES
from tests.support.image_folders import paint

CARS = 10
"""Classes of the small Cars196: the first ten official ones, with two images for training and one for the test each."""


def annotations(rows: list[tuple[str, int, int]], name: str, *, flag: bool) -> np.ndarray:
    """A struct array as MATLAB writes it: box, class, file name, and the test flag where the file has one."""
    fields = [("bbox_x1", object), ("class", object), (name, object)] + ([("test", object)] if flag else [])
    struct = np.empty((1, len(rows)), dtype=fields)
    for i, (image, class_id, test) in enumerate(rows):
        struct[0, i]["bbox_x1"], struct[0, i]["class"], struct[0, i][name] = 300 + i, class_id, image
        if flag:
            struct[0, i]["test"] = test
    return struct


def names_of(classes: tuple[str, ...]) -> np.ndarray:
    """MATLAB's cell array of class names."""
    cells = np.empty((1, len(classes)), dtype=object)
    cells[0, :] = classes
    return cells


def cars_annotated(root: Path) -> Path:
    """cars_annos.mat and car_ims/, classes in a row."""
    rows = []
    for c in range(CARS):
        for i in range(3):
            number = 3 * c + i + 1
            rows.append((f"car_ims/{number:06d}.jpg", c + 1, int(i == 2)))
            paint(root / rows[-1][0], seed=number)
    content = {"annotations": annotations(rows, "relative_im_path", flag=True)}
    savemat(root / "cars_annos.mat", {**content, "class_names": names_of(CAR_NAMES[:CARS])})
    return root


def cars_devkit(root: Path, *, labels_at_root: bool = False, nested: bool = False) -> Path:
    """cars_train/, cars_test/ and devkit/; file names repeat between the two parts."""
    devkit = root / "devkit"
    devkit.mkdir(parents=True)
    savemat(devkit / "cars_meta.mat", {"class_names": names_of(CAR_NAMES[:CARS])})
    for part, per_class in (("train", 2), ("test", 1)):
        # Downwards, so that no order of files gives the classes away.
        rows = [
            (f"{n:05d}.jpg", class_id, 0)
            for n, class_id in enumerate(np.repeat(np.arange(CARS, 0, -1), per_class).tolist(), start=1)
        ]
        inner = root / f"cars_{part}" / (f"cars_{part}" if nested else "")
        for image, class_id, _ in rows:
            paint(inner / image, seed=class_id)
        file = "cars_train_annos.mat" if part == "train" else "cars_test_annos_withlabels.mat"
        place = root if part == "test" and labels_at_root else devkit
        savemat(place / file, {"annotations": annotations(rows, "fname", flag=False)})
    return root


def cars_folders(root: Path, below: str = "car_data/car_data", classes: tuple[str, ...] = CAR_NAMES[:CARS]) -> Path:
    """train/ and test/ with a folder per class; file names repeat between the two parts."""
    for part, per_class in (("train", 2), ("test", 1)):
        number = 0
        for name in sorted(classes):
            for _ in range(per_class):
                number += 1
                paint(root / below / part / name.replace("/", "-") / f"{number:05d}.jpg", seed=number)
    return root


def sop(root: Path, train: int = 5, test: int = 4, per_class: int = 2) -> Path:
    """Ebay_train.txt, Ebay_test.txt and images by product kind; image ids go on in the second list."""
    image_id = 0
    for file, ids in (("Ebay_train.txt", range(1, train + 1)), ("Ebay_test.txt", range(train + 1, train + test + 1))):
        lines = ["image_id class_id super_class_id path"]
        for class_id in ids:
            kind = ("bicycle", "chair")[class_id % 2]
            for i in range(per_class):
                image_id += 1
                path = f"{kind}_final/{111085122871 + class_id}_{i}.JPG"
                paint(root / path, seed=image_id)
                lines.append(f"{image_id} {class_id} {1 + class_id % 2} {path}")
        (root / file).write_text("\n".join(lines) + "\n")
    return root


def inshop(root: Path, *, official: bool = True) -> Path:
    """Eval/list_eval_partition.txt and Img/img, or both at the root; the list is in no order of items."""
    rows = []
    for number in (7, 3, 5, 1, 11):
        rows += [(number, i, "train") for i in (1, 2)]
    for number in (2, 12, 4, 6):
        rows += [(number, 1, "query"), (number, 2, "gallery"), (number, 3, "gallery")]
    lines = [str(len(rows)), "image_name item_id evaluation_status"]
    for number, i, status in rows:
        path = f"img/WOMEN/Dresses/id_{number:08d}/{i:02d}_1_front.jpg"
        paint(root / ("Img" if official else "") / path, seed=100 * number + i)
        lines.append(f"{path:<70} id_{number:08d}    {status}")
    place = root / "Eval" if official else root
    place.mkdir(exist_ok=True)
    (place / "list_eval_partition.txt").write_text("\n".join(lines) + "\n")
    return root
