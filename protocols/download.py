"""Getting one file over HTTP, going on where it stopped, and unpacking it without trusting what it holds.

A file gets its name only when it is whole and its checksum is right; until then it is NAME.partial.
"""

import gzip
import hashlib
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen


class DownloadError(ValueError):
    """A file cannot be had, or is not what it should be; the message says what to do."""


Progress = Callable[[int, int | None], None]
"""Bytes or members done, and how many there are in all."""

_CHUNK = 1 << 20
_TIMEOUT = 60.0
# Some hosts turn away what says no more than that it is Python.
_AGENT = "metric-learning-reproductions"
_RANGE_NOT_SATISFIABLE, _PARTIAL_CONTENT = 416, 206
# A RuntimeError is zipfile's word for a password or a compression that it does not know.
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)


def download(
    url: str, to: Path, *, md5: str | None = None, size: int | None = None, progress: Progress | None = None
) -> None:
    """Fetches `url` into the file `to`; raises DownloadError.

    What an interrupted call has received is kept beside it and not fetched again, if the server can send a part. A
    file of another size in bytes or MD5 checksum than given is removed.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    partial = to.with_name(to.name + ".partial")
    try:
        total = _receive(url, partial, progress)
    except (HTTPException, OSError) as error:
        # A URLError is an OSError; one of the disk itself has a file name.
        if getattr(error, "filename", None) == str(partial):
            raise
        reason = f"{error.code} {error.reason}" if isinstance(error, HTTPError) else getattr(error, "reason", error)
        raise DownloadError(f"{url}: cannot be fetched ({reason}); {_kept(partial)}") from error
    if total is not None and partial.stat().st_size < total:
        raise DownloadError(f"{url}: the connection ended before the file did; {_kept(partial)}")
    try:
        verify(partial, url, md5=md5, size=size)
    except DownloadError:
        partial.unlink()
        raise
    partial.replace(to)


def verify(path: Path, name: str | None = None, *, md5: str | None = None, size: int | None = None) -> None:
    """Raises DownloadError unless the file has that size in bytes and MD5 checksum, where given."""
    name = name or str(path)
    found = path.stat().st_size
    if size is not None and found != size:
        raise DownloadError(f"{name}: {found:,} bytes instead of the published {size:,}; get the file again")
    if md5 is not None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if digest != md5:
            raise DownloadError(f"{name}: MD5 checksum {digest} instead of {md5}; get the file again")


def is_archive(name: str) -> bool:
    """Whether `unpack` knows the suffix."""
    return name.endswith((".zip", ".tgz", ".tar.gz", ".tar"))


def unpack(archive: Path, to: Path, progress: Progress | None = None) -> None:
    """Unpacks a zip or tar file into the folder `to`, whole or not at all; raises DownloadError.

    Members that would land outside the folder, links out of it and devices are refused; nothing is overwritten.
    """
    to.mkdir(parents=True, exist_ok=True)
    # On the same disk as the end, so that renaming is enough.
    unpacking = to / f".{archive.name}.unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    try:
        if archive.name.endswith(".zip"):
            _unzip(archive, unpacking, progress)
        else:
            _untar(archive, unpacking, progress)
        entries = sorted(unpacking.iterdir())
        if taken := next((entry.name for entry in entries if (to / entry.name).exists()), None):
            raise DownloadError(f"{to / taken}: in the way of what {archive.name} holds; move it away and try again")
        for entry in entries:
            entry.rename(to / entry.name)
    except _BROKEN as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        raise DownloadError(f"{archive}: cannot be unpacked ({reason}); get the file again") from error
    finally:
        shutil.rmtree(unpacking, ignore_errors=True)


def _receive(url: str, partial: Path, progress: Progress | None) -> int | None:
    """Appends to `partial` what it lacks; the whole size, if the server says it."""
    done = partial.stat().st_size if partial.exists() else 0
    part = {"Range": f"bytes={done}-"} if done else {}
    request = Request(url, headers={"User-Agent": _AGENT, **part})
    try:
        response = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        if error.code != _RANGE_NOT_SATISFIABLE or not done:
            raise
        if error.headers.get("Content-Range") == f"bytes */{done}":
            return done
        # What is here is longer than the file: it is of another one.
        partial.unlink()
        return _receive(url, partial, progress)
    with response:
        going_on = response.status == _PARTIAL_CONTENT
        if going_on and not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            raise URLError("the server sent another part than it was asked for")
        done = done if going_on else 0
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with partial.open("ab" if going_on else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                if progress:
                    progress(done, total)
    return total


def _kept(partial: Path) -> str:
    done = partial.stat().st_size if partial.exists() else 0
    return f"the same command goes on from byte {done:,}" if done else "try again later"


def _unzip(archive: Path, to: Path, progress: Progress | None) -> None:
    with zipfile.ZipFile(archive) as file:
        members = file.infolist()
        for done, member in enumerate(members, start=1):
            path = PurePosixPath(member.filename.replace("\\", "/"))
            link = stat.S_ISLNK(member.external_attr >> 16)
            if path.is_absolute() or ".." in path.parts or ":" in path.parts[0] or link:
                raise DownloadError(f"{archive}: member {member.filename!r} would leave the folder; get the file again")
            file.extract(member, to)
            if progress:
                progress(done, len(members))


def _untar(archive: Path, to: Path, progress: Progress | None) -> None:
    with tarfile.open(archive) as file:
        # How many there are is known only at the end of a compressed file.
        for done, member in enumerate(file, start=1):
            try:
                file.extract(member, to, filter="data")
            except tarfile.FilterError as error:
                raise DownloadError(
                    f"{archive}: member {member.name!r} would leave the folder; get the file again"
                ) from error
            if progress:
                progress(done, None)
