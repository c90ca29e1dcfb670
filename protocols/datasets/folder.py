"""Any folder of images: `root/class_name/*.jpg`, classes in the alphabetical order of their folders."""

from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, DataRequest, Dataset, ImageListing, from_listing

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".gif"})


def list_folder(root: Path, name: str = "folder") -> ImageListing:
    """List the images of a folder with one folder per class.

    Args:
        root: The folder. Images lie at any depth below a class folder; hidden files and other suffixes are ignored.
        name: Name of the dataset.

    Returns:
        The images. The conventional split trains on the first half of the classes.

    Raises:
        DataError: There is no such folder.
    """
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give the folder that holds one folder of images per class")
    folders = sorted(entry for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    names: list[str] = []
    labels: list[int] = []
    for rank, folder in enumerate(folders):
        for path in images_below(folder):
            names.append(path.relative_to(root).as_posix())
            labels.append(rank)
    class_names = tuple(folder.name for folder in folders)
    conventional = len(folders) - len(folders) // 2
    return ImageListing(name, root, class_names, tuple(names), np.asarray(labels, dtype=np.int64), conventional)


def images_below(folder: Path) -> list[Path]:
    """Return the image files below a folder, in alphabetical order. Hidden files and other suffixes are ignored."""
    files = sorted(folder.rglob("*"))
    return [path for path in files if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")]


def open_folder(request: DataRequest) -> Dataset:
    """Open a folder of images.

    Args:
        request: Folder and settings.

    Raises:
        DataError: The folder is missing or cannot be used.
    """
    if request.root is None:
        raise DataError("folder: say where the images lie with --data FOLDER (one folder per class in it)")
    return from_listing(list_folder(request.root), request)
