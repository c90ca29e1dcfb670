"""Atomic writes: a file or folder is written under another name, synchronised and renamed when it is complete.

A power cut leaves the old file or the complete new one, and a record in the store never names a file that is lost.
"""

import errno
import lzma
import os
import re
import shutil
import unicodedata
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

BAD_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, RuntimeError)
"""What Python raises for a damaged zip file."""


def file_name(name: str) -> str:
    """Make `name` safe as a part of a file name: only letters, digits, `_`, `.` and `-`, so it stays in its folder."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "unnamed"


def folder_names(names: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Make a folder's name of each name, all different on systems that ignore case or the form of accents.

    Names that look alike get a number, such as `a_b` and `a_b_2`, as do reserved ones.
    """
    found: dict[str, str] = {}
    taken = {"con", "nul", "aux", "prn", *reserved}
    for name in names:
        base = safe = file_name(unicodedata.normalize("NFC", name))
        number = 1
        while safe.casefold() in taken:
            number += 1
            safe = f"{base}_{number}"
        taken.add(safe.casefold())
        found[name] = safe
    return found


def partial_name(path: Path) -> Path:
    """Return a hidden name in the folder of `path` that no other thread, process or machine uses."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents; their names are on the disk when this returns."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    _sync(path.parent)


def put_in_place(partial: Path, path: Path) -> None:
    """Rename a complete file or folder in one step, and replace a file at `path`; a folder there must be empty."""
    # A symbolic link has no content of its own, and it can lead nowhere.
    if not partial.is_symlink():
        for below in partial.rglob("*") if partial.is_dir() else ():
            if not below.is_symlink():
                _sync(below)
        _sync(partial)
    partial.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def try_out(path: Path) -> None:
    """Raise the OSError that a write of a path would raise: before work whose outcome is to go there."""
    make_folder(path.parent)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    partial = partial_name(path)
    partial.touch()
    partial.unlink()


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """Write a file atomically and make its folder. Readers see the old content or the new one, never a part."""
    with atomic_file(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Provide the name of a file to write. It is renamed to `path` when the block ends without an error, else removed.

    The folder of `path` is made.
    """
    make_folder(path.parent)
    partial = partial_name(path)
    try:
        yield partial
        put_in_place(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Provide an empty folder to fill. It is renamed to `path` when the block ends without an error.

    `path` must not exist or must be empty. The folder is removed if the block raises an error.
    """
    partial = partial_name(path)
    make_folder(partial)
    try:
        yield partial
        put_in_place(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_sound(path: Path) -> bool:
    """Return whether a file is a complete zip archive whose members have the contents that their checksums say."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(archive.namelist()) and archive.testzip() is None
    except (OSError, *BAD_ZIP):
        return False
