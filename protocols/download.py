"""Getting one file over HTTP and checking it, and unpacking an archive without trusting what it holds.

The downloads are made here with urllib because pooch, the usual library for this, cannot go on with a file that was
received in part, and the datasets' archives have more than a gigabyte.
"""

import gzip
import hashlib
import shutil
import stat
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
    """A file cannot be had, or is not what it should be; the message says what to do."""


_CHUNK = 1 << 20
# Some hosts refuse clients that call themselves just Python.
_AGENT = "metric-learning-reproductions"
_RANGE_NOT_SATISFIABLE, _PARTIAL_CONTENT = 416, 206
# zipfile raises RuntimeError for a password or a compression that it does not know.
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)


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
    """Fetches a file; it gets its name when it is whole and its content is right.

    Args:
        url: Address of the file.
        to: The file to write. Its folder is made; an earlier file is replaced.
        sha256: First digits, in hexadecimal, of the content's SHA-256.
        md5: MD5 of the content, in hexadecimal.
        size: Bytes of the content.
        progress: Told the bytes received and the bytes in all.
        timeout: Seconds without an answer after which the server is given up.
        resume: Keep what an interrupted call has received in `to`.partial, and fetch only the rest the next time, if
            the server can send a part. Choose False where several processes may fetch the same file at once.

    Raises:
        DownloadError: The file cannot be fetched, or it is not the one described. What was at `to` before is kept.
        OSError: The file cannot be written.
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
    """Raises DownloadError unless the file has the given size, checksum and first digits of its SHA-256."""
    name = name or str(path)
    present = path.stat().st_size
    if size is not None and present != size:
        raise DownloadError(f"{name}: {present:,} bytes instead of the published {size:,}; get the file again")
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
    """Whether `unpack` knows the suffix."""
    return name.endswith((".zip", ".tgz", ".tar.gz", ".tar"))


def unpack(archive: Path, to: Path, progress: Progress | None = None) -> None:
    """Unpacks a zip or tar file into the folder `to`, whole or not at all; raises DownloadError.

    Members that would land outside the folder, links out of it and devices are refused; nothing is overwritten.
    """
    to.mkdir(parents=True, exist_ok=True)
    # On the same disk as the target, so that renaming is enough.
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


def _receive_whole(url: str, partial: Path, progress: Progress | None, timeout: float, *, resume: bool) -> None:
    """Completes `partial`; raises DownloadError, which says how to go on if the partial file is kept."""
    try:
        total = _receive(url, partial, progress, timeout)
    except (HTTPException, OSError) as error:
        # A URLError is an OSError too; an error of the disk has the file's name.
        if getattr(error, "filename", None) == str(partial):
            raise
        advice = f"; {_next_step(partial)}" if resume else ""
        raise DownloadError(f"{url}: cannot be fetched ({_reason(error)}){advice}") from error
    if total is not None and partial.stat().st_size < total:
        advice = f"; {_next_step(partial)}" if resume else ""
        raise DownloadError(f"{url}: the connection ended before the file did{advice}")


def _receive(url: str, partial: Path, progress: Progress | None, timeout: float) -> int | None:
    """Appends to `partial` what it lacks; returns the whole size in bytes if the server says it."""
    done = partial.stat().st_size if partial.exists() else 0
    part = {"Range": f"bytes={done}-"} if done else {}
    request = Request(url, headers={"User-Agent": _AGENT, **part})
    try:
        response = urlopen(request, timeout=timeout)
    except HTTPError as error:
        if error.code != _RANGE_NOT_SATISFIABLE or not done:
            raise
        if error.headers.get("Content-Range") == f"bytes */{done}":
            return done
        # The partial file is longer than the file, so it belongs to another one.
        partial.unlink()
        return _receive(url, partial, progress, timeout)
    with response:
        resumed = response.status == _PARTIAL_CONTENT
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            raise URLError("the server sent another part than it was asked for")
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
    """One line; without urllib's wrapping around the error of the network."""
    if isinstance(error, HTTPError):
        return f"{error.code} {error.reason}"
    inner = error.reason if isinstance(error, URLError) else error
    return (str(inner).splitlines() or [type(inner).__name__])[0]


def _next_step(partial: Path) -> str:
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
