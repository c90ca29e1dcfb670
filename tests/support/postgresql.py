"""A PostgreSQL server of the machine's own package, on loopback, in a temporary folder, for the length of the tests."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

PASSWORD = "Geheim77"
"""No other text of the tests has it, so that it is found wherever it is shown."""


DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.cluster)]
"""Parameters of tests that run on each kind of database."""


class Server:
    """A server that can be restarted.

    Args:
        programs: Folder of `initdb` and `pg_ctl`.
        folder: Folder of its files.
        account: Arguments of `subprocess.run` for the user that it runs as.
    """

    def __init__(self, programs: Path, folder: Path, account: dict[str, Any]) -> None:
        self.programs, self.folder, self.account, self.databases = programs, folder, account, 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "password").write_text(PASSWORD)
        secret = ("--username=suite", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}")
        self._tell("initdb", "--no-sync", "--encoding=UTF8", "--locale=C", *secret)

    def _tell(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.folder / "data"), *arguments]
        # The server inherits the output, so a pipe would never end.
        with (self.folder / "log").open("a") as log:
            subprocess.run(command, cwd=self.folder, stdout=log, stderr=log, check=True, **self.account)

    def start(self) -> None:
        options = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories= -c fsync=off"
        self._tell("pg_ctl", "-w", "-o", options, "start")

    def stop(self) -> None:
        """Stop the server and break all connections."""
        self._tell("pg_ctl", "-w", "-m", "fast", "stop")

    def url(self, database: str) -> str:
        return f"postgresql://suite:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Create an empty database and return its URL."""
        self.databases += 1
        name = f"store_{self.databases}"
        server = self.url("postgres").replace("postgresql:", "postgresql+psycopg:")
        engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return self.url(name)

    @contextmanager
    def cutting(self, url: str, seconds: float = 0.15) -> Iterator[None]:
        """Cut all connections to a database again and again, until the end of the block."""
        engine = sa.create_engine(self.url("postgres").replace("postgresql:", "postgresql+psycopg:"))
        cut = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(seconds):
                with engine.begin() as connection:
                    connection.execute(cut, {"name": url.rpartition("/")[2]})

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            engine.dispose()


def _programs() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    folders += [Path(on_path).parent] if on_path else []
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server, or skip the test with the reason why that is not possible."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # The server refuses to run as root, and cannot enter pytest's own temporary folders as another user.
    account: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="postgresql-") as name:
        folder = Path(name)
        if account:
            shutil.chown(folder, account["user"], account["group"])
        server = Server(programs, folder, account)
        server.start()
        try:
            yield server
        finally:
            server.stop()
