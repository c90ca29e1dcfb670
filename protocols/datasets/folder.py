"""Any folder of images: `root/class_name/*.jpg`.

Folders may be nested: a class is the first folder on the way down that holds an image itself, and its name is the whole
path, such as `alphabet/character`.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protocols.datasets.listing import DataError, ImageListing, in_class_order, named
from protocols.datasets.parts import parts_among
from protocols.datasets.split_file import SPLIT_FILE, with_split
from results.spec.data_choice import FOLDER

SUFFIXES = frozenset(
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx"),
        *(".png", ".apng", ".gif", ".webp", ".avif", ".avifs", ".bmp", ".dib", ".tif", ".tiff"),
        *(".ppm", ".pgm", ".pbm", ".pnm", ".pfm", ".qoi", ".psd", ".ico", ".icns", ".cur", ".dds", ".blp"),
        *(".tga", ".icb", ".vda", ".vst", ".sgi", ".rgb", ".rgba", ".bw", ".pcx", ".dcx", ".pcd", ".pxr", ".ras"),
        *(".im", ".iim", ".fit", ".fits", ".fli", ".flc", ".ftc", ".ftu", ".gbr", ".msp", ".xbm", ".xpm"),
    }
)
"""Suffixes of the formats that Pillow decodes by itself. Fixed, so that another Pillow does not change a dataset."""

_WRITTEN_BY_MACHINES = frozenset(
    {
        *("@eadir", "@synoeastream", "@synoresource", "@sharebin", "@tmp", "#recycle", "#snapshot", "~snapshot"),
        *("@recycle", "@__thumb", "@recently-snapshot", "trashbox", "files_trashbin", "_gsdata_"),
        *("__macosx", "$recycle.bin", "recycler", "recycled", "system volume information", "lost+found", "msocache"),
        *("found.000", "found.001", "found.002", "thumbs.db", "network trash folder", "temporary items"),
        *("ipod photo cache", "__pycache__"),
    }
)
"""Folders that storages and systems write into data, in small letters: previews and removed files."""

_WRITTEN_FILES = ("synophoto_", "synofile_", "thumbs.db", "ehthumbs", "desktop.ini")
"""Beginnings of the names of their files."""


@dataclass(frozen=True)
class ImageTree:
    """What lies below a folder. All paths are relative to it, and in alphabetical order.

    Attributes:
        folders: All folders but hidden ones, those that machines write, and those that a link leads back to.
        images: All files with the suffix of an image but the hidden ones.
        left_out: Phrases with number and names of what is no part of the data.
    """

    folders: tuple[Path, ...]
    images: tuple[Path, ...]
    left_out: tuple[str, ...]


def list_folder(root: Path, split: Path | None = None) -> ImageListing:
    """List the images of a folder with one folder per class; without `split`, a `split.csv` in the folder counts."""
    listing = with_split(list_class_folders(root), split)
    check_parts(listing)
    return listing


def check_parts(listing: ImageListing) -> None:
    """Refuse a layout such as `train/CLASS` and `val/CLASS`, which would be parts of class names, without a split."""
    parts = {} if listing.is_split_given else parts_among(listing.class_names)
    if parts:
        example = min(set.intersection(*parts.values()) - {""}, default=None)
        same = f", and hold classes of the same names, such as {example}" if example else ""
        raise DataError(
            f"{listing.root}: {' and '.join(parts)} look like parts of one dataset{same}, but would count as "
            f"parts of the names of different classes; give the class and the part of every image in {SPLIT_FILE} "
            "(columns file, class, split), or name one of these folders with --data"
        )


def list_class_folders(root: Path) -> ImageListing:
    """List the images of a folder with one folder per class. A split file is not read."""
    tree = walk(root)
    class_names = in_class_order(folder.as_posix() for folder in _class_folders(tree))
    rank_of = {Path(name): rank for rank, name in enumerate(class_names)}
    ranked = sorted(
        (next(rank_of[folder] for folder in path.parents if folder in rank_of), path) for path in tree.images
    )
    return ImageListing(
        FOLDER,
        root,
        tuple(class_names),
        tuple(path.as_posix() for _, path in ranked),
        np.asarray([rank for rank, _ in ranked], dtype=np.int64),
        left_out=tree.left_out,
    )


def _class_folders(tree: ImageTree) -> set[Path]:
    """Return the first folders on the way down that hold an image, and empty ones without a folder in them."""
    with_images = {path.parent for path in tree.images}
    with_folders = {folder.parent for folder in tree.folders if folder != Path()}
    classes: set[Path] = set()
    # A folder comes before those in it.
    for folder in tree.folders:
        is_last = folder in with_images or folder not in with_folders
        if folder != Path() and is_last and classes.isdisjoint(folder.parents):
            classes.add(folder)
    return classes


def walk(root: Path) -> ImageTree:
    """Visit all folders below a folder, each of them once.

    Links to folders elsewhere are followed. A link to a folder below `root`, or around it, or to one that was visited
    before, is left out: it would show the same images a second time. Raises DataError if there is no folder, or if one
    cannot be listed.
    """
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give the folder that holds one folder of images per class")
    real_root = root.resolve()
    seen = set[Path]()
    folders, files, hidden, machines, repeated = [list[Path]() for _ in range(5)]
    for place, below, names in os.walk(root, onerror=_refuse, followlinks=True):
        folder, target = Path(place), Path(place).resolve()
        linked = folder != root and folder.is_symlink()
        if target in seen or (linked and (target.is_relative_to(real_root) or real_root.is_relative_to(target))):
            repeated.append(folder)
            below.clear()
            continue
        seen.add(target)
        folders.append(folder)
        files += [folder / name for name in names]
        hidden += [folder / name for name in below if name.startswith(".")]
        machines += [folder / name for name in below if name.lower() in _WRITTEN_BY_MACHINES]
        below[:] = sorted(name for name in below if not _is_left_out(name))
    machines += [path for path in files if path.name.lower().startswith(_WRITTEN_FILES)]
    files = [path for path in files if not path.name.lower().startswith(_WRITTEN_FILES)]
    images = [path for path in files if path.suffix.lower() in SUFFIXES]
    shown = [path for path in images if not path.name.startswith(".")]
    others = [path for path in files if path.suffix.lower() not in SUFFIXES and not path.name.startswith(".")]
    kinds = [
        ("link", repeated, "to folders that are in the data already"),
        ("image", [path for path in shown if path.parent == root], "outside of the classes' folders"),
        ("file", [path for path in others if path != root / SPLIT_FILE], "without the suffix of an image"),
        ("path", machines, "that a storage or a system writes beside images"),
        ("path", hidden + [path for path in images if path.name.startswith(".")], "whose name begins with a dot"),
    ]
    return ImageTree(
        _relative(folders, root),
        _relative([path for path in shown if path.parent != root], root),
        tuple(named(thing, [str(p) for p in _relative(paths, root)], what) for thing, paths, what in kinds if paths),
    )


def _is_left_out(folder: str) -> bool:
    return folder.startswith(".") or folder.lower() in _WRITTEN_BY_MACHINES


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be listed ({error.strerror}); make it readable, or remove it")


def _relative(paths: Iterable[Path], root: Path) -> tuple[Path, ...]:
    return tuple(sorted(path.relative_to(root) for path in paths))
