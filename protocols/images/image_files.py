"""A list of image files with a cheap stamp and a hash of their content, to recognise a pack of the same files."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from protocols.verified_files import stamp_of
from results.values import fingerprint_of

T = TypeVar("T")
R = TypeVar("R")

HASH_BYTES = 32
_NO_HASH = bytes(HASH_BYTES)
_PACK_FORMAT = 3
"""Raise it with a change of the pixels or of the files of a pack. Packs of other formats are not opened."""


@dataclass(frozen=True)
class ImageFiles:
    """Image files and the size that they are decoded to.

    Attributes:
        resize: Shorter side in pixels after the resize; None keeps the size.
        as_mlrc: Whether to ignore transparency and EXIF tags, as MLRC's code does.
    """

    root: Path
    names: Sequence[str]
    resize: int | None
    as_mlrc: bool = False

    def __len__(self) -> int:
        return len(self.names)

    def path(self, row: int) -> Path:
        """Return the path of file number `row`."""
        return self.root / self.names[row]

    def stamp(self) -> str:
        """Return a hash that changes with every change of the files. It looks at the files but does not read them."""
        digest = hashlib.sha256(f"{_PACK_FORMAT} {self.resize} {self.as_mlrc}".encode())
        for row, name in enumerate(self.names):
            try:
                status = stamp_of(self.path(row))
            except OSError as error:  # Such as a link to a file that does not exist.
                status = f"no file ({error.errno})"
            digest.update(f"\n{name}\t{status}".encode())
        return digest.hexdigest()

    def hash_of(self, row: int) -> bytes:
        """Return the SHA-256 of file number `row`, 32 bytes; zeros if it cannot be read."""
        path = self.path(row)
        try:
            return hashlib.sha256(path.read_bytes()).digest() if path.is_file() else _NO_HASH
        except OSError:
            return _NO_HASH

    def identity(self, hashes: Iterable[bytes]) -> str:
        """Return the name of the pack of these files by what it holds."""
        content = hashlib.sha256(b"".join(hashes)).hexdigest()
        return fingerprint_of([_PACK_FORMAT, self.resize, self.as_mlrc, list(self.names), content])


def equal_rows(hashes: Iterable[bytes]) -> list[list[int]]:
    """Return the groups of rows with equal hashes. Files that cannot be read are equal to none."""
    rows: dict[bytes, list[int]] = {}
    for row, content in enumerate(hashes):
        rows.setdefault(content, []).append(row)
    return [group for content, group in rows.items() if len(group) > 1 and content != _NO_HASH]


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the results of a function for many items, in their order.

    Threads are enough, since reading, hashing and Pillow's decoders release the interpreter lock.
    """
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(work, items))
