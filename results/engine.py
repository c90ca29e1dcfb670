"""Opens the database at the URL of a store: SQLite, or PostgreSQL through psycopg 3."""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect, ExceptionContext

from results.patience import LockedStoreError, LostConnectionError
from results.store_error import StoreError
from results.store_url import shown_url, without_passwords

_PATIENCE = 60.0
"""How long, in seconds, a write waits for a locked SQLite file or for a server that restarts."""

# A server that shuts down sends these before it closes the connection.
_SHUTDOWN_STATES = frozenset({"57P01", "57P02", "57P03"})


def engine_url(url: str) -> sa.URL:
    """Return the URL with psycopg 3 as the driver of PostgreSQL, unless it names another one.

    Args:
        url: SQLAlchemy URL of a store.

    Raises:
        StoreError: The URL cannot be read, or it belongs to another kind of database.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise _unusable(url, str(error)) from None
    if parsed.get_backend_name() == "postgres":  # A usual name of the same thing.
        parsed = parsed.set(drivername="postgresql")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise _unusable(url, "a store is a SQLite file or a PostgreSQL database")
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed


def open_engine(url: str) -> sa.Engine:
    """Open a database, without connecting to it.

    Args:
        url: SQLAlchemy URL of a store.

    Raises:
        StoreError: The URL cannot be used, or a package is missing.
    """
    parsed = engine_url(url)
    try:
        engine = sa.create_engine(parsed, **engine_arguments(parsed))
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("psycopg"):
            raise _unusable(url, str(error)) from None
        raise StoreError(
            f"store {shown_url(url)}: PostgreSQL needs the package {error.name}, the extra `postgres` of this suite; "
            "run `pip install 'psycopg[binary]'`"
        ) from None
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError, TypeError, ValueError) as error:
        raise _unusable(url, str(error)) from None
    if parsed.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _sync_whole_commits)
    raise_passing_errors(engine, url)
    wait_for_restarts(engine)
    return engine


def _sync_whole_commits(connection: Any, _record: Any) -> None:
    # A commit is on the disk when it returns, also after a power cut.
    connection.execute("PRAGMA synchronous = EXTRA")


def engine_arguments(url: sa.URL) -> dict[str, Any]:
    """Return the arguments of `create_engine` for a database.

    Args:
        url: The database's URL.
    """
    if url.get_backend_name() == "sqlite":
        # A reader (`status`, a dashboard) must never make the writer fail.
        return {"connect_args": {"timeout": _PATIENCE}}
    return {"pool_pre_ping": True}


def raise_passing_errors(engine: sa.Engine, url: str) -> None:
    """Let the engine raise errors that pass as those that `patient` methods wait for.

    Args:
        engine: The database.
        url: Its URL, whose password is hidden in the messages.
    """

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


def in_one_line(error: BaseException | None, url: str) -> str:
    """Return what went wrong in a database as one line without passwords.

    Args:
        error: Error of the driver.
        url: URL of the store.
    """
    reason = without_passwords(str(error), url).strip().splitlines()[0]
    return f"store {shown_url(url)}: {reason}; what was stored before is kept"


def wait_for_restarts(engine: sa.Engine, *, reached: bool = False) -> None:
    """Let later connections wait up to a minute for a server that was reached before. SQLite has no server.

    Args:
        engine: The database.
        reached: Whether the server was reached already. The first connection does not wait.
    """
    if engine.dialect.name == "sqlite":
        return

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


def _unusable(url: str, reason: str) -> StoreError:
    first_line = without_passwords(reason, url).splitlines()[0]
    return StoreError(f"store {shown_url(url)!r}: not a usable SQLAlchemy URL ({first_line})")
