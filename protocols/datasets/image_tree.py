"""The walk through a folder of images. It follows links, visits no folder twice, and names what it leaves out."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from protocols.datasets.dataset import DataError
from protocols.datasets.notes_on_data import named
from protocols.datasets.split_file import SPLIT_FILE

SUFFIXES = frozenset(
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx"),
        *(".png", ".apng", ".gif", ".webp", ".avif", ".avifs", ".bmp", ".dib", ".tif", ".tiff"),
        *(".ppm", ".pgm", ".pbm", ".pnm", ".pfm", ".qoi", ".psd", ".ico", ".icns", ".cur", ".dds", ".blp"),
        *(".tga", ".icb", ".vda", ".vst", ".sgi", ".rgb", ".rgba", ".bw", ".pcx", ".dcx", ".pcd", ".pxr", ".ras"),
        *(".im", ".iim", ".fit", ".fits", ".fli", ".flc", ".ftc", ".ftu", ".gbr", ".msp", ".xbm", ".xpm"),
    }
)
"""Suffixes of the formats that Pillow decodes by itself, without another program or a handler that is installed apart.

The list is fixed, so that another version of Pillow does not change a dataset without a word.
"""


@dataclass(frozen=True)
class ImageTree:
    """What lies below a folder. All paths are relative to it, and in alphabetical order.

    Attributes:
        folders: All folders but the hidden ones, and those that a link leads back to.
        images: All files with the suffix of an image but the hidden ones.
        left_out: Phrases with number and names of what is no part of the data.
    """

    folders: tuple[Path, ...]
    images: tuple[Path, ...]
    left_out: tuple[str, ...]


def walk(root: Path) -> ImageTree:
    """Visit all folders below a folder, each of them once.

    Folders that lie below `root` themselves come first, then links in alphabetical order. A link to a folder that was
    visited before, or that holds `root`, is left out: it would show the same images a second time. Raises DataError if
    there is no folder, or if one cannot be listed.
    """
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give the folder that holds one folder of images per class")
    seen, real_root = set[Path](), root.resolve()
    folders, files, hidden, repeated = (list[Path]() for _ in range(4))
    waiting = [root]
    while waiting:
        links: list[Path] = []
        for place, below, names in chain.from_iterable(os.walk(top, onerror=_refuse) for top in waiting):
            folder, target = Path(place), Path(place).resolve()
            if target in seen or (folder != root and real_root.is_relative_to(target)):
                repeated.append(folder)
                below.clear()
                continue
            seen.add(target)
            folders.append(folder)
            files += [folder / name for name in names]
            hidden += [folder / name for name in below if name.startswith(".")]
            visible = [name for name in below if not name.startswith(".")]
            links += [folder / name for name in visible if (folder / name).is_symlink()]
            below[:] = [name for name in visible if not (folder / name).is_symlink()]
        waiting = sorted(links)
    images = [path for path in files if path.suffix.lower() in SUFFIXES]
    hidden += [path for path in images if path.name.startswith(".")]
    images = [path for path in images if not path.name.startswith(".")]
    others = [path for path in files if path.suffix.lower() not in SUFFIXES and not path.name.startswith(".")]
    kinds = {
        "link(s) to folders that are in the data already": repeated,
        "image(s) outside of the classes' folders": [path for path in images if path.parent == root],
        "file(s) without the suffix of an image": [path for path in others if path != root / SPLIT_FILE],
        "hidden folder(s) or image(s)": hidden,
    }
    return ImageTree(
        _relative(folders, root),
        _relative([path for path in images if path.parent != root], root),
        tuple(named(kind, [str(path) for path in _relative(paths, root)]) for kind, paths in kinds.items() if paths),
    )


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be listed ({error.strerror}); make it readable, or remove it")


def _relative(paths: Sequence[Path], root: Path) -> tuple[Path, ...]:
    return tuple(sorted(path.relative_to(root) for path in paths))
