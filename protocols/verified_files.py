"""Checks that files of the cache still hold what was written. Damaged ones are set aside and made again."""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Protocol, TypedDict

from results.whole_files import ChangedFileError, set_aside

_LOG = logging.getLogger(__name__)


class TouchedFileError(OSError):
    """A file was written during a training or test, and now holds the same as before. Another attempt can succeed."""


class Verifiable(Protocol):
    """Data in files that can be checked."""

    def check(self) -> Sequence[str]:
        """Return the stamps of the files; raise ChangedFileError unless they hold what they should."""


class FileRecord(TypedDict):
    """What is noted about a file when it is complete."""

    hash: str
    stamp: str


def stamp_of(path: Path) -> str:
    """Return a text that changes with every change of a file: size, times of change and number of the file.

    The time of the last change of content can be set by programs. The time of change that the file system keeps (ctime)
    cannot, so a file of equal size and equal time is still noticed.
    """
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file's content; raise OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_of(path: Path) -> FileRecord:
    """Note the hash and the stamp of a complete file."""
    return {"hash": hash_of(path), "stamp": stamp_of(path)}


def check_file(path: Path, record: FileRecord) -> str:
    """Check that a file holds what it held when its record was made, and return its stamp.

    The file is read only if its stamp differs, for instance because the cache was copied.
    """
    try:
        stamp = stamp_of(path)
        if stamp == record["stamp"] or _hash_at(path, stamp) == record["hash"]:
            return stamp
    except (OSError, KeyError, TypeError) as error:
        raise changed(path) from error
    raise changed(path)


@contextmanager
def unchanged(data: Sequence[Verifiable]) -> Iterator[None]:
    """Check data before and after a block that reads them, so that its results belong to these data and no others.

    If the files have changed, an error of the block is replaced: it may be a consequence.

    Raises:
        ChangedFileError: The files do not hold what they should.
        TouchedFileError: They do, but were written meanwhile. What the block has read is not known.
    """

    def stamps() -> list[str]:
        return [stamp for each in data for stamp in each.check()]

    before = stamps()
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    if stamps() != before:
        raise TouchedFileError("files of the cache were written meanwhile") from failure
    if failure is not None:
        raise failure


def changed(path: Path) -> ChangedFileError:
    """Return the error for a file that does not hold what it should."""
    return ChangedFileError(
        f"{path}: damaged, or replaced during the run; run the same command again, which makes it again; what was "
        "being computed from it is thrown away, everything finished is kept"
    )


def set_damaged_aside(path: Path, what: str) -> None:
    """Set a damaged file or folder aside and say so in one line."""
    _LOG.warning("%s %s is damaged; it is kept as %s and made again", what, path, set_aside(path).name)


@lru_cache(maxsize=64)
def _hash_at(path: Path, stamp: str) -> str:
    """The hash of a file with this stamp. A worker opens the same file for each of its tasks and reads it once."""
    return hash_of(path)
