"""The database of a store: one SQLite file in WAL mode. Threads and processes can use it at the same time."""

import hashlib
import json
import logging
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from results.store import StoreError
from results.values import Record

SCHEMA_VERSION = 6
VERSION_TABLE = "suite_schema"

_CONTENT = "sha256 TEXT NOT NULL, content TEXT NOT NULL"
_RECORD = f"fingerprint TEXT PRIMARY KEY, {_CONTENT}"

TABLES = {
    "trainings": _RECORD,
    "test_curves": _RECORD,
    "runs": _RECORD,
    "experiments": f"{_RECORD}, name TEXT NOT NULL, last_started TEXT NOT NULL",
    "studies": _RECORD,
    "trials": f"study TEXT, number INTEGER, {_CONTENT}, PRIMARY KEY (study, number)",
    "experiment_studies": "experiment TEXT, method TEXT, search INTEGER, study TEXT NOT NULL, "
    "PRIMARY KEY (experiment, method, search)",
    "experiment_runs": "experiment TEXT, method TEXT, search INTEGER, run INTEGER, run_fingerprint TEXT NOT NULL, "
    "study TEXT, PRIMARY KEY (experiment, method, search, run)",
    "failures": "id INTEGER PRIMARY KEY, training TEXT NOT NULL, reason TEXT NOT NULL, at TEXT NOT NULL",
}
"""The columns of each table; `docs/storage.md` describes them."""

_LOG = logging.getLogger(__name__)

_WAIT_SECONDS = 60.0
"""How long a write waits for the writes of other threads and processes."""

AnyRecord = TypeVar("AnyRecord", bound=Record)


def store_file(place: str | Path) -> Path:
    """Return the file that `--store` names: a path, in which `~` is the home folder, or `sqlite:///PATH`.

    Raises:
        StoreError: It names no file.
    """
    path = str(place).removeprefix("sqlite:///")
    if "://" in path:
        scheme = path.partition("://")[0]  # The rest can have a password.
        raise StoreError(f"--store {scheme}://...: a store is one SQLite file; give it, as in runs/store.sqlite")
    if path.strip() in ("", ".", ":memory:"):
        raise StoreError(f"--store {str(place)!r}: names no file; give a path, such as runs/store.sqlite")
    return Path(path).expanduser()


def make_file(path: Path) -> None:
    """Make an empty file with the rights that the user's mask gives; SQLite would keep a group from writing it."""
    if not path.exists():
        with suppress(OSError):  # SQLite says what is wrong.
            path.touch()


def digest_of(content: object) -> str:
    """Return the SHA-256 of a content, which is text unless the row is damaged."""
    return hashlib.sha256(str(content).encode()).hexdigest()


def content_of(row: Any) -> str:
    """Return the content of a row; raise ValueError if its hash is another one."""
    if digest_of(row["content"]) != row["sha256"]:
        raise ValueError("its hash is not that of its content")
    return str(row["content"])


def why_unreadable(error: ValueError) -> str:
    """Return in a few words why a record cannot be read."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'content'}: {first['msg']}"


class Database:
    """The tables of a store. Every call opens a connection of its own.

    Args:
        place: What `--store` names. The file is made if there is none; its folder must exist.

    Attributes:
        file: The file.

    Raises:
        StoreError: The file has tables of another program or of another schema version, or cannot be opened.
    """

    def __init__(self, place: str | Path) -> None:
        self.file = store_file(place)
        self._named: set[str] = set()
        make_file(self.file)
        with self._one_line_errors(), closing(self._connect("rwc")) as connection:
            tables = _table_names(connection)
            if VERSION_TABLE not in tables:
                if tables & TABLES.keys():
                    raise StoreError(f"store {self.file}: holds tables of another program; choose another with --store")
                _make_tables(connection)
            (version,) = connection.execute(f"SELECT max(version) FROM {VERSION_TABLE}").fetchone()
            if version != SCHEMA_VERSION:
                raise StoreError(
                    f"store {self.file}: made by schema version {version}, this suite reads version {SCHEMA_VERSION}; "
                    "use the release that made it, or another store with --store"
                )
            with suppress(sqlite3.OperationalError):  # The next one to open it tries again.
                connection.execute("PRAGMA journal_mode = WAL")

    def _uri(self, mode: str) -> str:
        folder, exists = self.file.absolute().parent, self.file.exists()
        if exists and not (os.access(folder, os.W_OK) and os.access(self.file, os.W_OK)):
            # Files for the log cannot be made beside it; without a log in use nobody writes.
            mode = "ro" if self.file.with_name(f"{self.file.name}-wal").exists() else "ro&immutable=1"
        return f"{self.file.absolute().as_uri()}?mode={mode}"

    def _connect(self, mode: str = "rw") -> sqlite3.Connection:
        connection = sqlite3.connect(self._uri(mode), uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous = FULL")  # A commit is on the disk when it returns.
        return connection

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            remedies = {
                "disk is full": f"; free some space in {self._fullest()}",
                "not a database": "; name a store with --store",
            }
            remedy = next((one for part, one in remedies.items() if part in str(error)), "")
            raise StoreError(f"store {self.file}: {error}{remedy}; what was stored before is kept") from error

    def _fullest(self) -> Path:
        """Return which folder has least space: that of the store, or the one that SQLite sorts large queries in."""
        temporary = os.environ.get("SQLITE_TMPDIR") or os.environ.get("TMPDIR") or "/var/tmp"
        folders = [path for path in (self.file.absolute().parent, Path(temporary)) if path.is_dir()]
        return min(folders, key=lambda folder: shutil.disk_usage(folder).free)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a connection that sees one state of the store."""
        with self._one_line_errors(), closing(self._connect()) as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self, other: "Database | None" = None) -> Iterator[sqlite3.Connection]:
        """Open a connection for one transaction, which is committed at the end of the block.

        The tables of another store, `other`, are then `other.trainings` and so on.
        """
        with self._one_line_errors(), closing(self._connect()) as connection:
            if other is not None:
                connection.execute("ATTACH ? AS other", (other._uri("rw"),))
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def copy_to(self, file: Path) -> None:
        """Write one state of the store into a new file."""
        make_file(file)
        with self._one_line_errors(), closing(self._connect()) as connection:
            connection.execute("VACUUM INTO ?", (str(file),))

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Return the rows of a query."""
        with self.reading() as connection:
            return connection.execute(query, values).fetchall()

    def put(self, table: str, *, replace: bool = False, **row: object) -> None:
        """Insert a row; one with the same key stays, or is replaced."""
        with self.writing() as connection:
            insert(connection, table, row, replace=replace)

    def records(
        self, kind: type[AnyRecord], table: str, fingerprints: Iterable[str] | None = None
    ) -> Iterator[tuple[str, AnyRecord]]:
        """Yield fingerprints and records of a table, in order: those with these fingerprints, or all `readable`."""
        with self.reading() as connection:
            query, values = f"SELECT * FROM {table}", []
            if fingerprints is not None:
                query += " WHERE fingerprint IN (SELECT value FROM json_each(?))"
                values.append(json.dumps(list(fingerprints)))
            rows = connection.execute(f"{query} ORDER BY fingerprint", values)
            if fingerprints is None:
                yield from ((row["fingerprint"], record) for row, record in self.readable(kind, rows, table))
            else:
                for row in rows:
                    yield row["fingerprint"], self.parsed(kind, row, f"row {row['fingerprint']} of {table}")

    def readable(
        self, kind: type[AnyRecord], rows: Iterable[sqlite3.Row], table: str
    ) -> Iterator[tuple[sqlite3.Row, AnyRecord]]:
        """Yield rows of a table with their records. What `parsed` refuses is left out, and named once as a warning."""
        for row in rows:
            name = f"row {row['fingerprint']} of {table}"
            try:
                yield row, self.parsed(kind, row, name)
            except StoreError as error:
                if name not in self._named:
                    _LOG.warning("left out: %s", error)
                self._named.add(name)

    def parsed(self, kind: type[AnyRecord], row: sqlite3.Row, name: str) -> AnyRecord:
        """Return the record of a row; raise StoreError if it is damaged or of another release."""
        try:
            return kind.model_validate_json(content_of(row))
        except ValueError as error:
            raise self.damaged(name, why_unreadable(error)) from error

    def damaged(self, name: str, reason: str) -> StoreError:
        """Return the error for a row that cannot be used."""
        return StoreError(
            f"store {self.file}: {name} is damaged, or another release wrote it ({reason}); `reproduce store check` "
            "lists all such rows; use a copy of the store from before, or delete the row, which a run makes again"
        )


def insert(connection: sqlite3.Connection, table: str, row: dict[str, object], *, replace: bool = False) -> None:
    """Insert a row in an open transaction; `content` gets its hash. One with the same key stays, or is replaced."""
    if "content" in row:
        row = {**row, "sha256": digest_of(row["content"])}
    verb = "INSERT OR REPLACE" if replace else "INSERT OR IGNORE"
    places = ", ".join("?" * len(row))
    connection.execute(f"{verb} INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))


def _table_names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make all tables or none, unless another process was faster."""
    connection.execute("BEGIN IMMEDIATE")
    if VERSION_TABLE not in _table_names(connection):
        for name, columns in {VERSION_TABLE: "version INTEGER NOT NULL", **TABLES}.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
        connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES (?)", (SCHEMA_VERSION,))
    connection.execute("COMMIT")
