"""Any folder of images: `root/class_name/*.jpg`, classes in the alphabetical order of their folders.

Folders may be nested: a class is the first folder on the way down that holds an image itself, and its name is the whole
path, such as `alphabet/character`.
"""

from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataRequest, Dataset, ImageListing, from_listing
from protocols.datasets.image_tree import ImageTree, walk
from protocols.datasets.listing import root_of
from protocols.datasets.split_file import with_split


def list_folder(root: Path, split: Path | None = None) -> ImageListing:
    """List the images of a folder with one folder per class; without `split`, a `split.csv` in the folder counts."""
    return with_split(list_class_folders(root), split)


def list_class_folders(root: Path) -> ImageListing:
    """List the images of a folder with one folder per class. A split file is not read."""
    tree = walk(root)
    classes = _class_folders(tree)
    rank_of = {folder: rank for rank, folder in enumerate(classes)}
    ranked = sorted(
        (next(rank_of[folder] for folder in path.parents if folder in rank_of), path) for path in tree.images
    )
    return ImageListing(
        "folder",
        root,
        tuple(folder.as_posix() for folder in classes),
        tuple(path.as_posix() for _, path in ranked),
        np.asarray([rank for rank, _ in ranked], dtype=np.int64),
        len(classes) - len(classes) // 2,
        left_out=tree.left_out,
    )


def _class_folders(tree: ImageTree) -> list[Path]:
    """Return the first folders on the way down that hold an image, and empty ones without a folder in them."""
    with_images = {path.parent for path in tree.images}
    with_folders = {folder.parent for folder in tree.folders if folder != Path()}
    classes: set[Path] = set()
    # A folder comes before those in it.
    for folder in tree.folders:
        is_last = folder in with_images or folder not in with_folders
        if folder != Path() and is_last and classes.isdisjoint(folder.parents):
            classes.add(folder)
    return sorted(classes)


def open_folder(request: DataRequest) -> Dataset:
    """Open a folder of images."""
    root = root_of(request, "the folder that holds one folder of images per class")
    return from_listing(list_folder(root, split=request.choice.split), request)
