"""Writing of files and folders in one step: each is written under another name and renamed when it is complete."""

import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def file_name(name: str) -> str:
    """Make `name` safe as a part of a file name: only letters, digits, `_`, `.` and `-`, so it stays in its folder."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "unnamed"


def partial_name(path: Path) -> Path:
    """Return a hidden name in the folder of `path` that no other thread, process or machine uses."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")


def put_in_place(partial: Path, path: Path) -> None:
    """Rename a complete file or folder in one step. A file at `path` is replaced; a folder there must be empty."""
    partial.replace(path)


def write_whole(path: Path, content: str | bytes | memoryview) -> None:
    """Write a file in one step and make its folder. Readers see the old content or the new one, never a part.

    Args:
        path: The file. It is replaced if it exists.
        content: The bytes to write; text is written as UTF-8.

    Raises:
        OSError: The file cannot be written. The old file is kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_name(path)
    try:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        put_in_place(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path, beside: Path | None = None) -> Iterator[Path]:
    """Provide an empty folder to fill. It is renamed to `path` when the block ends without an error.

    Args:
        path: The folder. It must not exist or must be empty; its parent is made.
        beside: Another path on the same disk. While it is filled, the folder lies beside this path and not beside
            `path`. None uses `path`.

    Yields:
        The folder to write to. It is removed if the block raises an error.
    """
    partial = partial_name(beside or path)
    partial.mkdir(parents=True)
    try:
        yield partial
        path.parent.mkdir(parents=True, exist_ok=True)
        put_in_place(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
