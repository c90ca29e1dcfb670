"""Any folder of images: `root/class_name/*.jpg`, classes in the alphabetical order of their folders.

Folders may be nested: a class is the first folder on the way down that holds an image itself, and its name is the whole
path, such as `alphabet/character`.
"""

from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, DataRequest, Dataset, ImageListing, from_listing
from protocols.datasets.split_file import with_split

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".gif"})


def list_folder(root: Path, split: Path | None = None) -> ImageListing:
    """List the images of a folder with one folder per class; without `split`, a `split.csv` in the folder counts."""
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give the folder that holds one folder of images per class")
    folders = [folder for entry in _folders_in(root) for folder in _class_folders(entry)]
    names: list[str] = []
    labels: list[int] = []
    for rank, folder in enumerate(folders):
        for path in images_below(folder):
            names.append(path.relative_to(root).as_posix())
            labels.append(rank)
    class_names = tuple(folder.relative_to(root).as_posix() for folder in folders)
    conventional = len(folders) - len(folders) // 2
    listing = ImageListing("folder", root, class_names, tuple(names), np.asarray(labels, dtype=np.int64), conventional)
    return with_split(listing, split)


def _class_folders(folder: Path) -> list[Path]:
    """Return the class folders at and below a folder: the first ones on the way down that hold an image."""
    inner = _folders_in(folder)
    if not inner or any(_is_image(path) for path in folder.iterdir()):
        return [folder]
    return [found for entry in inner for found in _class_folders(entry)]


def _folders_in(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()


def images_below(folder: Path) -> list[Path]:
    """Return the image files below a folder, in alphabetical order. Hidden files and other suffixes are ignored."""
    files = sorted(folder.rglob("*"))
    return [path for path in files if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")]


def open_folder(request: DataRequest) -> Dataset:
    """Open a folder of images."""
    if request.root is None:
        raise DataError("folder: say where the images lie with --data FOLDER (one folder per class in it)")
    return from_listing(list_folder(request.root, split=request.split), request)
