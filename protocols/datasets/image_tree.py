"""The one walk through a folder of images. It follows links, knows where it has been, and names what it leaves out."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from protocols.datasets.dataset import DataError
from protocols.datasets.notes_on_data import named, shown
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

_MOST_SUFFIXES = 8


@dataclass(frozen=True)
class ImageTree:
    """What lies below a folder. All paths are relative to it, and in alphabetical order.

    Attributes:
        folders: All folders but the hidden ones, and those that a link leads back to.
        images: All files with the suffix of an image but the hidden ones.
        left_out: Phrases with number and names of what is no part of the data.
        faults: What cannot be listed, with the remedy.
    """

    folders: tuple[Path, ...]
    images: tuple[Path, ...]
    left_out: tuple[str, ...]
    faults: tuple[str, ...]


def walk(root: Path) -> ImageTree:
    """Visit all folders below a folder, each of them once.

    Folders that lie below `root` themselves come first, then links in alphabetical order. A link to a folder that was
    visited before, or that holds `root` or the link, is left out: it would show the same images a second time. Raises
    DataError if there is no folder.
    """
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give the folder that holds one folder of images per class")
    walked = _Walk(root)
    waiting = [root]
    while waiting:
        waiting = sorted(link for folder in waiting for link in walked.visit(folder))
    return walked.tree()


@dataclass
class _Walk:
    root: Path
    folders: list[Path] = field(default_factory=list)
    images: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    hidden: list[Path] = field(default_factory=list)
    links: list[Path] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)

    def visit(self, top: Path) -> list[Path]:
        """Visit a folder and those below it that are no links; return the links to folders."""
        waiting, links = [top], list[Path]()
        while waiting:
            folder = waiting.pop()
            try:
                if self._leads_back(folder):
                    self.links.append(folder)
                    continue
                with os.scandir(folder) as entries:
                    below = [(Path(entry.path), entry.is_symlink()) for entry in entries]
            except OSError as error:
                self.faults.append(f"{folder}: cannot be listed ({error.strerror}); make it readable, or remove it")
                continue
            self.folders.append(folder)
            for path, is_link in below:
                if not os.path.isdir(path):
                    self._sort_in(path)
                elif path.name.startswith("."):
                    self.hidden.append(path)
                else:
                    (links if is_link else waiting).append(path)
        return links

    def _leads_back(self, folder: Path) -> bool:
        status = folder.stat()
        # Several paths can lead to one folder without a link, such as those of a mount.
        identity = (status.st_dev, status.st_ino)
        if identity in self.seen:
            return True
        if folder != self.root and folder.is_symlink():
            target = folder.resolve()
            if any(inner.resolve().is_relative_to(target) for inner in (self.root, folder.parent)):
                return True
        self.seen.add(identity)
        return False

    def _sort_in(self, path: Path) -> None:
        is_image = path.suffix.lower() in SUFFIXES
        if path.name.startswith("."):
            self.hidden += [path] if is_image else []
        elif path != self.root / SPLIT_FILE:
            (self.images if is_image else self.others).append(path)

    def tree(self) -> ImageTree:
        loose = [path for path in self.images if path.parent == self.root]
        left_out = [
            *self._named("link(s) to folders that are in the data already", self.links),
            *self._named("image(s) outside of the classes' folders", loose),
            *self._by_suffix(),
            *self._named("hidden folder(s) or image(s)", self.hidden),
        ]
        images = [path for path in self.images if path.parent != self.root]
        return ImageTree(
            self._relative(self.folders), self._relative(images), tuple(left_out), tuple(sorted(self.faults))
        )

    def _by_suffix(self) -> list[str]:
        common = dict(Counter(path.suffix.lower() for path in self.others).most_common(_MOST_SUFFIXES))
        phrases = []
        for suffix in common:
            files = [path for path in self.others if path.suffix.lower() == suffix]
            phrases += self._named(f"{shown(suffix)} file(s)" if suffix else "file(s) without a suffix", files)
        rest = [path for path in self.others if path.suffix.lower() not in common]
        return phrases + self._named("file(s) with other suffixes", rest)

    def _named(self, what: str, paths: Sequence[Path]) -> list[str]:
        return [named(what, [path.as_posix() for path in self._relative(paths)])] if paths else []

    def _relative(self, paths: Sequence[Path]) -> tuple[Path, ...]:
        return tuple(sorted(path.relative_to(self.root) for path in paths))
