"""Download and check of one file, and unpacking of an archive.

The downloads use urllib. The usual library, pooch, cannot continue an interrupted download, and the datasets' archives
have more than a gigabyte.
"""

import gzip
import hashlib
import lzma
import tarfile
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from protocols.progress import Progress
from results.atomic_files import partial_name, put_in_place


class DownloadError(ValueError):
    """A file cannot be downloaded or unpacked, or has the wrong content. The message gives the remedy."""


_CHUNK = 1 << 20
# Some hosts refuse the default name of Python's client.
_AGENT = "metric-learning-reproductions"
_RANGE_NOT_SATISFIABLE, _PARTIAL_CONTENT = 416, 206
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


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
    advice = "run the same command again" + (" to continue" if resume else "")
    try:
        total = _receive(url, partial, progress, timeout)
        if total is not None and partial.stat().st_size < total:
            raise DownloadError(f"{url}: the connection ended before the file was complete; {advice}")
        try:
            verify(partial, url, sha256=sha256, md5=md5, size=size)
        except DownloadError:
            partial.unlink()
            raise
        put_in_place(partial, to)
    except (HTTPException, OSError) as error:
        raise DownloadError(f"{url}: cannot be fetched ({_first_line(error)}); {advice}") from error
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


def _receive(url: str, partial: Path, progress: Progress | None, timeout: float) -> int | None:
    """Append the missing bytes to `partial`; return the file's size in bytes if the server sends it."""
    done = partial.stat().st_size if partial.exists() else 0
    range_header = {"Range": f"bytes={done}-"} if done else {}
    try:
        response = urlopen(Request(url, headers={"User-Agent": _AGENT, **range_header}), timeout=timeout)
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


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def is_archive(name: str) -> bool:
    """Tell whether `unpack` supports the file name's suffix."""
    return name.endswith((".zip", ".tgz", ".tar.gz", ".tar"))


def unpack(archive: Path, to: Path) -> None:
    """Unpack a zip or tar file into a folder, over what an interrupted call has left. Nothing is written outside."""
    to.mkdir(parents=True, exist_ok=True)
    try:
        if archive.name.endswith(".zip"):
            with zipfile.ZipFile(archive) as zipped:
                zipped.extractall(to)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(to, filter="data")
    except _BROKEN as error:
        raise DownloadError(f"{archive}: cannot be unpacked ({_first_line(error)}); get the file again") from error
