"""The database of the store: connections, the check of the schema, and one type of error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from results.schema import SCHEMA_VERSION, belongs_to_another_program, prepare
from results.store_error import StoreError

if TYPE_CHECKING:
    import pandas as pd

_PARAMETERS_AT_ONCE = 500


class Database:
    """A database that holds the store's tables; every database error is raised as `StoreError`.

    Args:
        url: SQLAlchemy URL. Missing tables are created; tables of schema version 1 are upgraded.

    Raises:
        StoreError: The URL is not usable, or the database has tables of another program or of another schema version.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self.engine = sa.create_engine(url)
            if self.engine.dialect.name == "sqlite":
                sa.event.listen(self.engine, "connect", _set_up_sqlite)
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as error:
            raise StoreError(f"store {url!r}: not a usable SQLAlchemy URL ({error})") from error
        self._check_schema()

    def _check_schema(self) -> None:
        with self._store_errors():
            if belongs_to_another_program(self.engine):
                raise StoreError(f"store {self.url}: holds tables of another program; choose another with --store")
            version = prepare(self.engine)
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
            raise StoreError(f"store {self.url}: {error.orig}; what was stored before is kept") from error

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
        """Insert a row unless the table has a row with its fingerprint."""
        with self.writing() as connection:
            present = connection.execute(
                sa.select(sa.literal(1)).where(table.c.fingerprint == row["fingerprint"])
            ).scalar_one_or_none()
            if present is None:
                connection.execute(sa.insert(table).values(row))


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    # A reader (`status`, a dashboard) must never make the writer fail.
    connection.execute("PRAGMA busy_timeout = 60000")
    # A commit is on the disk when it returns, also after a power cut.
    connection.execute("PRAGMA synchronous = EXTRA")
