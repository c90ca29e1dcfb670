"""The published datasets: lists of images in the layouts of publishers, and their counts.

Ranks are those of the specification, sections 1, 2 and 11.3.

Cars196 has three common layouts: `cars_annos.mat` beside `car_ims/`; `cars_train/` and `cars_test/`, each with an
annotation file of the devkit; `train/` and `test/` with one folder per class name, as on mirrors. Its official training
and test images are pooled.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from protocols.datasets.dataset import Dataset
from protocols.datasets.folder import walk
from protocols.datasets.listing import DataError, ImageListing
from protocols.images.packed_images import LabelledImages, PackedImages
from results.wording import counted

CAR_NAMES = tuple(Path(__file__).with_name("cars196_names.txt").read_text(encoding="utf-8").splitlines())
"""The name of class id i at position i - 1: the order of `class_names` in the publisher's files.

Makes are in alphabetical order, but models within a make are not, so the ids cannot be derived from class folders.
"""

_CAR_PARTS = (("cars_train", "cars_train_annos.mat"), ("cars_test", "cars_test_annos_withlabels.mat"))

_Row = tuple[str, Any, str]
"""An image, the key of its class, and its part: `train`, `test`, `query`, `gallery`, or nothing without parts."""


def list_cub200(root: Path) -> ImageListing:
    """List all images of CUB-200-2011 (Wah et al. 2011), whose classes are ranked by their ids."""
    folder = _folder_with(root, "images.txt", "CUB_200_2011")
    with _reading(folder):
        names, images, classes = (
            dict(_rows(folder / file, 2)) for file in ("classes.txt", "images.txt", "image_class_labels.txt")
        )
        name_of = {int(key): name for key, name in names.items()}
        rows = [(image, int(classes[key]), "") for key, image in images.items()]
        return _listed("cub200", folder / "images", rows, name_of.__getitem__)


def list_cars196(root: Path) -> ImageListing:
    """List all images of Cars196 (Krause et al. 2013), and the classes that have one, ranked by their ids."""
    with _reading(root):
        return _listed("cars196", root, _car_rows(root), lambda number: CAR_NAMES[number - 1])


def list_sop(root: Path) -> ImageListing:
    """List all images of Stanford Online Products (Oh Song et al. 2016): both lists, training classes first."""
    folder = _folder_with(root, "Ebay_train.txt", "Stanford_Online_Products")
    with _reading(folder):
        return _listed(
            "sop",
            folder,
            [
                (image, int(product), part)
                for part in ("train", "test")
                for _, product, _, image in _rows(folder / f"Ebay_{part}.txt", 4, header_lines=1)
            ],
        )


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
    return _listed("inshop", images, [(image, item, part) for image, item, part in _rows(path, 3, header_lines=2)])


def _car_rows(root: Path) -> list[_Row]:
    if (root / "car_ims").is_dir():
        return _annotated(root, "cars_annos.mat", "relative_im_path", "")
    if any((root / folder).is_dir() for folder, _ in _CAR_PARTS):
        rows = []
        for folder, file in _CAR_PARTS:
            # One mirror has the folder inside a folder of the same name.
            inner = f"{folder}/{folder}" if (root / folder / folder).is_dir() else folder
            rows += _annotated(root, file, "fname", f"{inner}/")
        return rows
    for place in (root, root / "car_data", root / "car_data" / "car_data"):
        if (place / "train").is_dir() or (place / "test").is_dir():
            return [row for part in ("train", "test") for row in _in_folders(root, place / part)]
    raise DataError(
        f"{root}: no car_ims (with cars_annos.mat), no cars_train and cars_test (with devkit) and no train and test "
        "(with a folder per class) here; give the folder that holds them with --data"
    )


def _annotated(root: Path, file: str, field: str, folder: str) -> list[_Row]:
    """The image and the class id of every annotation; the publisher's flag `test` is ignored."""
    path = next((path for path in (root / "devkit" / file, root / file) if path.is_file()), root / file)
    with _reading(path):
        rows = np.atleast_1d(loadmat(path, squeeze_me=True)["annotations"])
        return [(f"{folder}{image}", int(number), "") for image, number in zip(rows[field], rows["class"], strict=True)]


def _in_folders(root: Path, folder: Path) -> Iterator[_Row]:
    """Images with the class of their folder. They are named by path, since file names repeat in train and test."""
    number_of = {_plain(name): number for number, name in enumerate(CAR_NAMES, start=1)}
    tree = walk(folder)
    if unknown := next((f for f in tree.folders if len(f.parts) == 1 and _plain(f.name) not in number_of), None):
        raise DataError(f"{folder / unknown}: no class of Cars196; name the folder as published")
    for path in tree.images:
        yield (folder / path).relative_to(root).as_posix(), number_of[_plain(path.parts[0])], ""


def _plain(name: str) -> str:
    """Letters and digits of a class name. Folder names differ in the others: `Ram C/V` is `Ram C-V` or `Ram C_V`."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _rows(path: Path, width: int, header_lines: int = 0) -> list[list[str]]:
    """Return the fields of each line of a publisher's list that is not empty. The last field may have spaces."""
    with _reading(path):
        lines = path.read_text(encoding="utf-8").splitlines()[header_lines:]
    rows = [line.split(maxsplit=width - 1) for line in lines if line.strip()]
    if wrong := next((row for row in rows if len(row) != width), None):
        raise DataError(f"{path}: a line has no {width} fields ({' '.join(wrong)}); unpack the publisher's files again")
    return rows


@contextmanager
def _reading(place: Path) -> Iterator[None]:
    """Turn what damaged or missing lists raise into one line."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, NotImplementedError, MatReadError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{place}: cannot be read ({reason}); unpack the publisher's files again") from error


def _listed(name: str, root: Path, rows: Sequence[_Row], name_of: Callable[[Any], str] = str) -> ImageListing:
    """List images, the classes sorted by their keys and those of training first; all images must exist once."""
    if twice := next((image for image, count in Counter(row[0] for row in rows).items() if count > 1), None):
        raise DataError(f"{root}: image {twice} is named twice; unpack the publisher's files again")
    if missing := [root / image for image, _, _ in rows if not (root / image).is_file()]:
        raise DataError(*(f"{path}: named by the publisher but missing; unpack the archive again" for path in missing))
    training, tested = ({key for _, key, part in rows if (part == "train") is trains} for trains in (True, False))
    if both := sorted(training & tested):
        raise DataError(f"{root}: class {both[0]} is in training and in test; unpack the publisher's files again")
    order = [*sorted(training), *sorted(tested)]
    rank_of = {key: rank for rank, key in enumerate(order)}
    parts = np.asarray([part for _, _, part in rows])
    return ImageListing(
        name,
        root,
        tuple(map(name_of, order)),
        tuple(image for image, _, _ in rows),
        np.asarray([rank_of[key] for _, key, _ in rows], dtype=np.int64),
        len(training) or None,
        is_query=parts == "query" if "query" in parts or "gallery" in parts else None,
    )


def _folder_with(root: Path, marker: str, unpacked: str) -> Path:
    """Return the folder that contains `marker`: `root`, or the archive's folder `unpacked` in it."""
    for folder in (root, root / unpacked):
        if (folder / marker).exists():
            return folder
    raise DataError(f"{root}: no {marker} and no {unpacked}/{marker} here; give the unpacked folder with --data")


@dataclass(frozen=True)
class Publication:
    """Where a dataset is from, and its published counts.

    Attributes:
        page: Address of the publisher's page.
        place: Layout of the unpacked files.
        trainval_classes: Number of classes that the conventional split trains on; they are the first ones.
        trainval_images: Number of their images.
        queries: Number of queries of the other classes; None if the publisher does not separate queries and gallery.
        gallery: Number of gallery images of the other classes, likewise.
    """

    page: str
    place: str
    classes: int
    images: int
    trainval_classes: int
    trainval_images: int
    queries: int | None = None
    gallery: int | None = None


# Numbers: classes, images, classes and images to train on, queries, gallery. Sources: specification, section 1; for
# SOP's images per part Song et al. 2016, table 1.
PUBLICATIONS = {
    "cub200": Publication(
        "https://data.caltech.edu/records/65de6-vp158",
        "CUB_200_2011/ with images.txt, classes.txt, image_class_labels.txt and images/",
        *(200, 11_788, 100, 5_864),
    ),
    "cars196": Publication(
        "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        "cars_annos.mat beside car_ims/; or cars_train/, cars_test/ and devkit/ with cars_train_annos.mat and "
        "cars_test_annos_withlabels.mat; or train/ and test/ with one folder per class name",
        *(196, 16_185, 98, 8_054),
    ),
    "sop": Publication(
        "https://cvgl.stanford.edu/projects/lifted_struct/",
        "Stanford_Online_Products/ with Ebay_train.txt, Ebay_test.txt and the folders *_final/",
        *(22_634, 120_053, 11_318, 59_551),
    ),
    "inshop": Publication(
        "https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html",
        "Eval/list_eval_partition.txt (or list_eval_partition.txt) and Img/img/ (or img/) with WOMEN/ and MEN/",
        *(7_982, 52_712, 3_997, 25_882, 14_218, 12_612),
    ),
}


def compare_counts(listing: ImageListing, published: Publication) -> list[tuple[str, int, int]]:
    """Return what is counted, all counts of a listing, and the published ones."""
    first, trainval = published.trainval_classes, listing.trainval_classes
    rows: list[tuple[str, int | None, int | None]] = [
        ("classes", listing.n_classes, published.classes),
        ("images", len(listing.labels), published.images),
        (
            f"images of the first {counted(first, 'class')}",
            int((listing.labels < first).sum()),
            published.trainval_images,
        ),
        ("training classes", trainval, first),
    ]
    if listing.is_query is not None:
        queries = listing.is_query[listing.labels >= (trainval or 0)]
        rows += [("queries", int(queries.sum()), published.queries)]
        rows += [("gallery images", int((~queries).sum()), published.gallery)]
    return [(what, found, known) for what, found, known in rows if found is not None and known is not None]


def check_counts(listing: ImageListing, published: Publication) -> None:
    """Raise DataError unless the listing has all published counts; the message names the first that differs."""
    if wrong := next((row for row in compare_counts(listing, published) if row[1] != row[2]), None):
        raise DataError(
            f"{listing.name}: {counted(len(listing.names), 'image')} of {counted(listing.n_classes, 'class')}, "
            f"published are {published.images} of {published.classes} ({wrong[0]}: {wrong[1]} instead of {wrong[2]}); "
            "complete the download, or use --subset if this is a part on purpose"
        )


def stand_in(name: str, counts: Publication) -> Dataset:
    """Make a dataset with the published counts and without images, to plan an experiment before the download.

    Images are spread evenly over the classes. Its fingerprint is `stand-in`, so that it is not taken for real data.
    """
    first, rest = counts.trainval_classes, counts.classes - counts.trainval_classes
    images = np.arange(counts.images)
    is_first = images < counts.trainval_images
    labels = np.sort(np.where(is_first, images % first, first + (images - counts.trainval_images) % rest))
    return Dataset(
        name=name,
        root=Path(),
        class_names=tuple(str(rank) for rank in range(counts.classes)),
        names=(),
        labels=labels,
        given_trainval=first,
        is_query=None if counts.queries is None else images < counts.trainval_images + counts.queries,
        images=LabelledImages(images, labels, PackedImages(Path())),
        fingerprint="stand-in",
    )
