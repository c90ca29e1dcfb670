"""Download and check of one file, and safe unpacking of an archive.

The downloads use urllib. The usual library, pooch, cannot continue an interrupted download, and the datasets' archives
have more than a gigabyte.
"""

import gzip
import hashlib
import lzma
import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from protocols.progress import Progress
from results.whole_files import partial_name, put_in_place


class DownloadError(ValueError):
    """A file cannot be downloaded or unpacked, or has the wrong content. The message gives the remedy."""


_CHUNK = 1 << 20
# Some hosts refuse the default name of Python's client.
_AGENT = "metric-learning-reproductions"
_RANGE_NOT_SATISFIABLE, _PARTIAL_CONTENT = 416, 206
# zipfile raises RuntimeError for an encrypted file and for an unknown compression.
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, RuntimeError, ValueError, OverflowError, LookupError),
)

LARGEST_GROWTH = 50
"""Most bytes of unpacked members per byte of an archive. Texts shrink to a tenth; images hardly shrink."""

_ALWAYS_ALLOWED, _MEMBER = 64 << 20, 512
"""Bytes that any archive may unpack to, and bytes that each member counts in addition to its content."""


def download(
    url: str,
    to: Path,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    timeout: float = 60.0,
    resume: bool = True,
) -> None:
    """Download a file. It gets its name only when it is complete and its content is checked, as `verify` does.

    Args:
        timeout: Seconds to wait for an answer of the server.
        resume: Whether an interrupted download keeps its bytes in `to`.partial, so that the next call fetches only the
            rest (if the server supports it). Use False if several processes may download the same file at once.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    partial = to.with_name(to.name + ".partial") if resume else partial_name(to)
    try:
        _receive_whole(url, partial, progress, timeout, resume=resume)
        try:
            verify(partial, url, sha256=sha256, md5=md5, size=size)
        except DownloadError:
            partial.unlink()
            raise
        put_in_place(partial, to)
    finally:
        if not resume:
            partial.unlink(missing_ok=True)


def verify(
    path: Path, name: str | None = None, *, sha256: str | None = None, md5: str | None = None, size: int | None = None
) -> None:
    """Check the size in bytes and the checksums of a file, which messages call `name`; None is not checked.

    The SHA-256 can be its first digits.
    """
    name = name or str(path)
    actual_size = path.stat().st_size
    if size is not None and actual_size != size:
        raise DownloadError(f"{name}: {actual_size:,} bytes instead of the published {size:,}; get the file again")
    if md5 is not None and (digest := _digest(path, "md5")) != md5:
        raise DownloadError(f"{name}: MD5 checksum {digest} instead of {md5}; get the file again")
    if sha256 is not None and not (digest := _digest(path, "sha256")).startswith(sha256):
        raise DownloadError(
            f"{name}: its SHA-256 begins with {digest[: len(sha256)]} instead of {sha256}; get the file again"
        )


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def is_archive(name: str) -> bool:
    """Tell whether `unpack` supports the file name's suffix."""
    return name.endswith((".zip", ".tgz", ".tar.gz", ".tar"))


def unpack(archive: Path, to: Path, progress: Progress | None = None) -> None:
    """Unpack a zip or tar file. Either all of its members are unpacked, or none.

    Members outside of the folder, links out of it and devices are refused. Nothing is overwritten.
    """
    to.mkdir(parents=True, exist_ok=True)
    # On the same disk as the target, so that members can be renamed.
    unpacking = to / f".{archive.name}.unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    unpacking.mkdir()
    try:
        if archive.name.endswith(".zip"):
            _unzip(archive, unpacking, progress)
        else:
            _untar(archive, unpacking, progress)
        entries = sorted(unpacking.iterdir())
        if existing := next((entry.name for entry in entries if os.path.lexists(to / entry.name)), None):
            raise DownloadError(
                f"{to / existing}: exists already, and {archive.name} holds it too; move it away and try again"
            )
        _put_all_in_place(entries, to)
    except DownloadError:
        raise
    except _BROKEN as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        raise DownloadError(f"{archive}: cannot be unpacked ({reason}); get the file again") from error
    finally:
        shutil.rmtree(unpacking, ignore_errors=True)


def _put_all_in_place(entries: list[Path], to: Path) -> None:
    """Move files and folders into the folder `to`. After an error those that were moved are taken back."""
    moved: list[Path] = []
    try:
        for entry in entries:
            put_in_place(entry, to / entry.name)
            moved.append(entry)
    except OSError:
        for entry in moved:
            (to / entry.name).replace(entry)
        raise


class _MemberCheck:
    """Refuses a member without a name, and an archive that unpacks to far more bytes than images and texts do."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._left = LARGEST_GROWTH * archive.stat().st_size + _ALWAYS_ALLOWED

    def add(self, name: str, size: int, *, is_dir: bool) -> None:
        """Count a member before it is unpacked; raise DownloadError if it is refused."""
        if not is_dir and not PurePosixPath(name.replace("\\", "/")).parts:
            raise DownloadError(f"{self._archive}: a member has no name ({name!r}); get the file again")
        self._left -= size + _MEMBER
        if self._left < 0:
            raise DownloadError(
                f"{self._archive}: unpacks to more than {LARGEST_GROWTH} times its size, as no archive of images "
                "does; get the file again"
            )


def _receive_whole(url: str, partial: Path, progress: Progress | None, timeout: float, *, resume: bool) -> None:
    cause: Exception | None = None
    try:
        total = _receive(url, partial, progress, timeout)
        if total is None or partial.stat().st_size >= total:
            return
        problem = "the connection ended before the file was complete"
    except (HTTPException, OSError) as error:
        # URLError is a subclass of OSError. Only an error of the disk has the name of the file.
        if getattr(error, "filename", None) == str(partial):
            raise
        cause, problem = error, f"cannot be fetched ({_reason(error)})"
    done = partial.stat().st_size if partial.exists() else 0
    advice = f"run the same command again to continue at byte {done:,}" if done else "try again later"
    raise DownloadError(f"{url}: {problem}; {advice}" if resume else f"{url}: {problem}") from cause


def _receive(url: str, partial: Path, progress: Progress | None, timeout: float) -> int | None:
    """Append the missing bytes to `partial`; return the file's size in bytes if the server sends it."""
    done = partial.stat().st_size if partial.exists() else 0
    range_header = {"Range": f"bytes={done}-"} if done else {}
    request = Request(url, headers={"User-Agent": _AGENT, **range_header})
    try:
        response = urlopen(request, timeout=timeout)
    except HTTPError as error:
        if error.code != _RANGE_NOT_SATISFIABLE or not done:
            raise
        if error.headers.get("Content-Range") == f"bytes */{done}":
            return done
        # The partial file is longer than the file, so it is a part of another file.
        partial.unlink()
        return _receive(url, partial, progress, timeout)
    with response:
        resumed = response.status == _PARTIAL_CONTENT
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            raise URLError("the server sent another part of the file than the requested one")
        done = done if resumed else 0
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with partial.open("ab" if resumed else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                if progress:
                    progress(done, total)
    return total


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{error.code} {error.reason}"
    cause = error.reason if isinstance(error, URLError) else error
    return (str(cause).splitlines() or [type(cause).__name__])[0]


def _unzip(archive: Path, to: Path, progress: Progress | None) -> None:
    with zipfile.ZipFile(archive) as file:
        members, check = file.infolist(), _MemberCheck(archive)
        for done, member in enumerate(members, start=1):
            path = PurePosixPath(member.filename.replace("\\", "/"))
            link = stat.S_ISLNK(member.external_attr >> 16)
            check.add(member.filename, member.file_size, is_dir=member.filename.endswith("/"))
            if path.is_absolute() or ".." in path.parts or ":" in "".join(path.parts[:1]) or link:
                raise DownloadError(f"{archive}: member {member.filename!r} would leave the folder; get the file again")
            if path.parts:
                file.extract(member, to)
            if progress:
                progress(done, len(members))


def _untar(archive: Path, to: Path, progress: Progress | None) -> None:
    with tarfile.open(archive) as file:
        check = _MemberCheck(archive)
        # The number of members is known only at the end of a compressed file.
        for done, member in enumerate(file, start=1):
            check.add(member.name, member.size, is_dir=member.isdir())
            try:
                file.extract(member, to, filter="data")
            except tarfile.FilterError as error:
                raise DownloadError(
                    f"{archive}: member {member.name!r} would leave the folder; get the file again"
                ) from error
            if progress:
                progress(done, None)
