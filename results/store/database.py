"""The database of the store: SQLite, or PostgreSQL through psycopg 3. Its errors are `StoreError`, one line each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from pydantic import BaseModel, ValidationError
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect, ExceptionContext
from sqlalchemy.exc import DBAPIError

from results.store.patience import LockedStoreError, LockWait, LostConnectionError, StoreError
from results.store.schema import SCHEMA_VERSION, belongs_to_another_program, prepare, stored_version
from results.store.urls import StorePlace, shown_url, without_passwords

if TYPE_CHECKING:
    import pandas as pd


_PATIENCE = 60.0
"""How long, in seconds, a write waits for a locked SQLite file or for a server that restarts."""

# A server that shuts down sends these before it closes the connection.
_SHUTDOWN_STATES = frozenset({"57P01", "57P02", "57P03"})


def file_url(file: Path) -> sa.URL:
    """Return the URL of a SQLite file. A text of it has all characters of the path escaped."""
    return sa.URL.create("sqlite", database=str(file.absolute()))  # Absolute, so that `:memory:` is a file too.


def _engine_url(url: StorePlace) -> sa.URL:
    """The URL of a file, or the URL with psycopg 3 as the driver of PostgreSQL, unless it names another one."""
    if isinstance(url, Path):
        return file_url(url)
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise _unusable(url, str(error)) from None
    if parsed.get_backend_name() == "postgres":  # A usual name of the same thing.
        parsed = parsed.set(drivername="postgresql")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise _unusable(url, "a store is a SQLite file or a PostgreSQL database")
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed


def open_engine(url: StorePlace) -> sa.Engine:
    """Open a database, without connecting to it."""
    parsed = _engine_url(url)
    is_file = parsed.get_backend_name() == "sqlite"
    # A reader, such as `status`, must never make the writer fail.
    arguments: dict[str, Any] = {"connect_args": {"timeout": _PATIENCE}} if is_file else {"pool_pre_ping": True}
    try:
        engine = sa.create_engine(parsed, **arguments)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("psycopg"):
            raise _unusable(url, str(error)) from None
        raise StoreError(
            f"store {shown_url(url)}: PostgreSQL needs the package {error.name}, the extra `postgres` of this suite; "
            "run `pip install 'psycopg[binary]'`"
        ) from None
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError, TypeError, ValueError) as error:
        raise _unusable(url, str(error)) from None
    if is_file:
        sa.event.listen(engine, "connect", _sync_whole_commits)
    else:
        _wait_for_restarts(engine)
    _name_errors_that_pass(engine, url)
    return engine


def _sync_whole_commits(connection: Any, _record: Any) -> None:
    # A commit is on the disk when it returns, also after a power cut.
    connection.execute("PRAGMA synchronous = EXTRA")


def _name_errors_that_pass(engine: sa.Engine, url: StorePlace) -> None:
    """Raise a locked file and a lost connection as errors of their own, on which `patient` methods try again."""

    def replacement(context: ExceptionContext) -> StoreError | None:
        state = getattr(context.original_exception, "sqlstate", None)
        if context.is_pre_ping or context.connection is None:  # The pool makes another connection.
            return None
        if getattr(context.original_exception, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
            return LockedStoreError(in_one_line(context.original_exception, url))
        if context.is_disconnect or state in _SHUTDOWN_STATES:
            context.is_disconnect = True
            return LostConnectionError(in_one_line(context.original_exception, url))
        return None

    sa.event.listen(engine, "handle_error", replacement)


def in_one_line(error: BaseException | None, url: StorePlace) -> str:
    """Return what went wrong in a database as one line without passwords."""
    reason = without_passwords(str(error), url).strip().splitlines()[0]
    return f"store {shown_url(url)}: {reason}; what was stored before is kept"


def _wait_for_restarts(engine: sa.Engine) -> None:
    """Let all but the first connection wait up to a minute for the server."""
    reached = False

    def connect(dialect: Dialect, _record: Any, arguments: list[Any], options: dict[str, Any]) -> DBAPIConnection:
        nonlocal reached
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                connection = dialect.connect(*arguments, **options)
            except dialect.loaded_dbapi.OperationalError:
                if not reached or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                reached = True
                return connection

    sa.event.listen(engine, "do_connect", connect)


def _unusable(url: StorePlace, reason: str) -> StoreError:
    first_line = without_passwords(reason, url).splitlines()[0]
    return StoreError(f"store {shown_url(url)!r}: not a usable SQLAlchemy URL ({first_line})")


_Model = TypeVar("_Model", bound=BaseModel)


def parsed(model: type[_Model], text: str, url: str) -> _Model:
    """Read a record from its JSON; raise StoreError if it is damaged or of another release."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise unreadable(model, error, url) from error


def unreadable(model: type[BaseModel], error: ValidationError, url: str) -> StoreError:
    """Return the error for a record that cannot be read, with the remedy."""
    return StoreError(f"store {url}: {_reason(model.__name__, error)}")


def _reason(name: str, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return (
            f"a {name} has the key {key!r}, which this release does not know; update the suite, or use another store "
            "with --store"
        )
    what = "is not JSON" if first["type"] == "json_invalid" else f"has no usable {key or 'content'!r}"
    return (
        f"a {name} in it {what}: it is damaged, or another release wrote it; use a copy of the store from before, or "
        "another store with --store"
    )


def insert_unless_present(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless the table has a row with its primary key; return whether it was inserted."""
    # Drivers count the rows of such an insert in different ways, so the inserted row is asked for.
    statement = _insert(connection, table).values(row).on_conflict_do_nothing().returning(*table.primary_key)
    return connection.execute(statement).first() is not None


def insert_or_replace(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> None:
    """Insert a row; if the table has a row with its primary key, give that row the new values."""
    keys = [column.name for column in table.primary_key]
    changes = {name: value for name, value in row.items() if name not in keys}
    statement = _insert(connection, table).values(row).on_conflict_do_update(index_elements=keys, set_=changes)
    connection.execute(statement)


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)


_PARAMETERS_AT_ONCE = 500


class Database:
    """A database with the store's tables.

    Args:
        url: SQLAlchemy URL, or the path of a SQLite file. Missing tables are created.
        only_read: Create none.

    Attributes:
        url: The path, or the URL with its password hidden, for messages.
        engine: SQLAlchemy's engine.
        lock_wait: What to do about a locked SQLite file.

    Raises:
        StoreError: The URL is not usable, or the database has tables of another program or of another schema version.
    """

    def __init__(self, url: StorePlace, *, only_read: bool = False) -> None:
        self.url, self._full_url = shown_url(url), url
        self.engine = open_engine(url)
        self.lock_wait = LockWait()
        self._check_schema(only_read=only_read)

    def _check_schema(self, *, only_read: bool) -> None:
        with self._store_errors():
            if belongs_to_another_program(self.engine):
                raise StoreError(f"store {self.url}: holds tables of another program; choose another with --store")
            if not only_read:
                prepare(self.engine)
            version = stored_version(self.engine)
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"store {self.url}: made by schema version {version}, this suite reads version {SCHEMA_VERSION}; "
                "use the release that made it, or another store with --store"
            )

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Raise an error of the database as a `StoreError` of one line; earlier commits are kept."""
        try:
            yield
        except DBAPIError as error:
            # The chained error would show the text again, with the password.
            raise StoreError(in_one_line(error.orig, self._full_url)) from None

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a connection for reading."""
        with self._store_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open a connection for writing. All changes are one transaction, committed at the end of the block."""
        with self._store_errors(), self.engine.begin() as connection:
            yield connection

    def frame(self, query: sa.Select[Any]) -> pd.DataFrame:
        """Return a query's rows as a DataFrame."""
        import pandas as pd  # Commands that only count do not need it.

        with self.reading() as connection:
            result = connection.execute(query)
            return pd.DataFrame(result.mappings().all(), columns=list(result.keys()))

    def rows(self, fingerprints: Iterable[str], table: sa.Table, *columns: sa.Column[Any]) -> list[sa.Row[Any]]:
        """Return the rows of a table that have one of the fingerprints.

        They are read in several queries, since databases limit the number of parameters of a query.
        """
        wanted = list(fingerprints)
        rows: list[sa.Row[Any]] = []
        with self.reading() as connection:
            for start in range(0, len(wanted), _PARAMETERS_AT_ONCE):
                part = wanted[start : start + _PARAMETERS_AT_ONCE]
                rows += connection.execute(sa.select(*columns).where(table.c.fingerprint.in_(part))).all()
        return rows

    def insert_once(self, table: sa.Table, row: dict[str, Any]) -> None:
        """Insert a row unless the table has a row with its primary key."""
        with self.writing() as connection:
            insert_unless_present(connection, table, row)
