"""A web server of this machine's own, with the weaknesses that servers have."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """Serves one content at any path.

    ranges: whether it sends parts. cut_after: bytes of an answer after which it hangs up. gone: answers 404. asked: the
    Range header of every request.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.ranges, self.gone = True, False
        self.cut_after: int | None = None
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        server, asked = self.server, self.headers.get("Range")
        server.asked.append(asked)
        if server.gone:
            self.send_error(404)
            return
        start, size = 0, len(server.content)
        if asked and server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        else:
            self.send_response(200)
        body = server.content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if server.cut_after is None else body[: server.cut_after])

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def serving(content: bytes) -> Iterator[FileServer]:
    """The server, running in a thread."""
    with FileServer(content) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
