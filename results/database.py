"""The database of the store: connections, the check of the schema, and one type of error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from results.engine import in_one_line, open_engine
from results.patience import LockWait
from results.schema import SCHEMA_VERSION, belongs_to_another_program, prepare, readable_version
from results.store_error import StoreError
from results.store_url import shown_url
from results.upserts import insert_unless_present

if TYPE_CHECKING:
    import pandas as pd

_PARAMETERS_AT_ONCE = 500


class Database:
    """A database that holds the store's tables; every database error is raised as `StoreError`.

    Args:
        url: SQLAlchemy URL. Missing tables are created; tables of an older schema version are upgraded.
        only_read: Do neither. The tables must exist.

    Attributes:
        url: The URL with its password hidden, for messages.
        engine: SQLAlchemy's engine.
        lock_wait: What to do about a locked SQLite file.

    Raises:
        StoreError: The URL is not usable, or the database has tables of another program or of another schema version.
    """

    def __init__(self, url: str, *, only_read: bool = False) -> None:
        self.url, self._full_url = shown_url(url), url
        self.engine = open_engine(url)
        self.lock_wait = LockWait()
        self._check_schema(only_read=only_read)

    def _check_schema(self, *, only_read: bool) -> None:
        with self._store_errors():
            if belongs_to_another_program(self.engine):
                raise StoreError(f"store {self.url}: holds tables of another program; choose another with --store")
            version = readable_version(self.engine) if only_read else prepare(self.engine)
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
