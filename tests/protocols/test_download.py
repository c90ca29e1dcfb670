"""Downloads that stop, lie or are gone; against a server of this machine's own."""

import hashlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from protocols import download as module
from protocols.download import DownloadError, download

CONTENT = os.urandom(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class FileServer(ThreadingHTTPServer):
    """Serves one content at any path. cut_after: bytes of an answer after which it hangs up. gone: answers 404."""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content, self.gone = content, False
        self.cut_after: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        if self.server.gone:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content[: self.server.cut_after])

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(CONTENT) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "new" / "file.bin"


def test_a_file_arrives(server, to, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 70_000)
    steps = []
    download(server.url, to, sha256=SHA256[:9], progress=lambda done, total: steps.append((done, total)))
    assert to.read_bytes() == CONTENT
    assert list(to.parent.iterdir()) == [to]
    assert steps == [(done, 300_000) for done in (70_000, 140_000, 210_000, 280_000, 300_000)]


def test_one_file_can_be_fetched_by_several_at_once(server, to):
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: download(server.url, to, sha256=SHA256), range(12)))
    assert to.read_bytes() == CONTENT
    assert list(to.parent.iterdir()) == [to]


@pytest.mark.parametrize(
    ("changes", "sha256", "words"),
    [
        ({}, "0" * 9, "its SHA-256 begins with .* instead of 000000000; get the file again"),
        ({"cut_after": 100_000}, None, "connection ended before the file was complete; run the same command again"),
        ({"gone": True}, None, "file.bin: cannot be fetched .*404.* again"),
    ],
)
def test_nothing_is_kept_of_what_fails(server, to, changes, sha256, words):
    for name, value in changes.items():
        setattr(server, name, value)
    with pytest.raises(DownloadError, match=words):
        download(server.url, to, sha256=sha256)
    assert list(to.parent.iterdir()) == []
