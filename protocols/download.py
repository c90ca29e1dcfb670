"""Download and check of one file."""

import hashlib
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from protocols.progress import Progress
from results.atomic_files import partial_name, put_in_place


class DownloadError(ValueError):
    """A file cannot be downloaded, or has the wrong content. The message gives the remedy."""


_CHUNK = 1 << 20
# Some hosts refuse the default name of Python's client.
_AGENT = "metric-learning-reproductions"
_AGAIN = "run the same command again"


def download(
    url: str, to: Path, *, sha256: str | None = None, progress: Progress | None = None, timeout: float = 60.0
) -> None:
    """Download a file. It gets its name only when it is complete and its content is checked.

    Args:
        sha256: The first digits of its SHA-256, or all; None is not checked.
        timeout: Seconds to wait for an answer of the server.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_name(to)
    try:
        digest = _receive(url, partial, progress, timeout)
        if sha256 is not None and not digest.startswith(sha256):
            raise DownloadError(
                f"{url}: its SHA-256 begins with {digest[: len(sha256)]} instead of {sha256}; get the file again"
            )
        put_in_place(partial, to)
    except (HTTPException, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DownloadError(f"{url}: cannot be fetched ({reason}); {_AGAIN}") from error
    finally:
        partial.unlink(missing_ok=True)


def _receive(url: str, partial: Path, progress: Progress | None, timeout: float) -> str:
    """Write the file to `partial`; return its SHA-256."""
    content, done = hashlib.sha256(), 0
    with (
        urlopen(Request(url, headers={"User-Agent": _AGENT}), timeout=timeout) as response,
        partial.open("wb") as file,
    ):
        length = response.headers.get("Content-Length")
        total = None if length is None else int(length)
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            content.update(chunk)
            done += len(chunk)
            if progress:
                progress(done, total)
    if total is not None and done < total:
        raise DownloadError(f"{url}: the connection ended before the file was complete; {_AGAIN}")
    return content.hexdigest()
