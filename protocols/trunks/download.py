"""A published file fetched over the network: whole and of the right content, or not there at all."""

import hashlib
import http.client
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

Progress = Callable[[int, int], None]
"""Told the bytes that have come and how many there will be; what has come, as long as the server does not say."""

SECONDS_OF_SILENCE = 10.0
_CHUNK = 1 << 18


class DownloadError(Exception):
    """Why a file could not be fetched, in a few words."""


def download(
    url: str, path: Path, sha256: str, progress: Progress | None = None, silence: float = SECONDS_OF_SILENCE
) -> None:
    """Fetches `url` to `path`, whose folder is made.

    sha256: first digits, in hexadecimal, of the content's SHA-256. silence: seconds without an answer before it is
    given up. `path` comes into being, or is replaced, in one step, when the content is there and right. Raises
    DownloadError.
    """
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = _fetch(url, partial, progress, silence)
        if not digest.startswith(sha256):
            raise DownloadError(f"its SHA-256 begins with {digest[: len(sha256)]} instead of {sha256}")
        os.replace(partial, path)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(_reason(error)) from error
    finally:
        with suppress(OSError):  # It may not be there, and what went wrong before is what has to be told.
            partial.unlink()


def _reason(error: Exception) -> str:
    """One line; of urllib's wrapper around what went wrong on the way only what is inside."""
    inner = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    return (str(inner).splitlines() or [type(inner).__name__])[0]


def _fetch(url: str, path: Path, progress: Progress | None, silence: float) -> str:
    """Writes what comes and returns its SHA-256."""
    digest, done = hashlib.sha256(), 0
    with urlopen(Request(url, headers={"User-Agent": "python"}), timeout=silence) as answer, path.open("xb") as file:
        total = int(answer.headers.get("Content-Length") or 0)
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, max(total, done))
    return digest.hexdigest()
