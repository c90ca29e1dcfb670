"""Paths of results, checkpoints and output; functions that open the store. Works without torch.

SQLAlchemy is imported by the functions that need it, so that `--help` does not wait for it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reproduce.errors import InputError
from results.store.patience import StoreError
from results.store.urls import shown_url

if TYPE_CHECKING:
    from results.store.store import Store


_EXAMPLE = "runs/store.sqlite"


@dataclass(frozen=True)
class StoragePaths:
    """The paths that a run reads and writes.

    Attributes:
        store: SQLAlchemy URL of the store, with its password; messages show `shown_store`.
        artifacts: Folder of the checkpoints.
        cache: Folder of the decoded images.
        tables: Folder that tables are written to.
        reports: Folder that pages are written to.
    """

    store: str = field(repr=False)
    artifacts: Path
    cache: Path
    tables: Path
    reports: Path

    @property
    def shown_store(self) -> str:
        """URL of the store with its password hidden."""

        return shown_url(self.store)

    def absolute(self) -> StoragePaths:
        """Return a copy with absolute paths, for processes that start in another folder.

        The store's URL does not change, since only this process writes to the store.
        """
        return replace(self, artifacts=self.artifacts.absolute(), cache=self.cache.absolute())


def storage_paths(store: str, artifacts: Path | None, cache: Path | None, tables: Path | None) -> StoragePaths:
    """Return the paths of a run for a file or a SQLAlchemy URL. Folders that are None are placed beside the store."""
    _refuse_store_in_memory(store)
    base = beside(store)
    if "://" not in store:
        store = f"sqlite:///{store}"
    return StoragePaths(
        store,
        artifacts or base / "artifacts",
        cache or base / "cache",
        tables or base / "tables",
        base / "reports",
    )


def _refuse_store_in_memory(store: str) -> None:
    """Refuse a store without a file. SQLite would hold it in memory, and nothing would be kept."""
    dialect, is_url, rest = store.partition("://")
    if is_url and not dialect.startswith("sqlite"):
        return
    file = (rest.removeprefix("/") if is_url else store).partition("?")[0].strip()
    if not file or ":memory:" in file or "mode=memory" in store:
        raise InputError(f"--store {store!r}: names no file, so nothing would be kept; name one, such as {_EXAMPLE}")


def beside(store: str) -> Path:
    """Return the folder that contains a store (a file or a URL); `runs` for the URL of a database server."""
    if "://" in store and not store.startswith("sqlite:///"):
        return Path("runs")
    return (_sqlite_file(store) or Path(store)).parent


def _sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite store; None for a database server."""
    if not url.startswith("sqlite"):
        return None
    return Path(url.partition(":///")[2].partition("?")[0].removeprefix("file:"))


def existing_store(where: StoragePaths) -> Store | None:
    """Open the store; return None if its file does not exist."""
    return open_store(where) if _may_exist(where) else None


def store_to_read(where: StoragePaths) -> Store | None:
    """Open the store without a write; return None if there is none."""
    from sqlalchemy.exc import DBAPIError

    from results.store.database import in_one_line, open_engine
    from results.store.schema import is_made
    from results.store.store import Store

    if not _may_exist(where):
        return None
    engine = open_engine(where.store)
    try:
        made = is_made(engine)
    except DBAPIError as error:
        raise StoreError(in_one_line(error.orig, where.store)) from None
    finally:
        engine.dispose()
    return Store(where.store, where.artifacts, only_read=True) if made else None


def _may_exist(where: StoragePaths) -> bool:
    """Tell whether the file of a SQLite store exists; always True for a database server."""
    file = _sqlite_file(where.store)
    return file is None or file.exists()


def open_store(where: StoragePaths) -> Store:
    """Open the store, and make it if there is none.

    Raises:
        InputError: The store's folder cannot be made.
        StoreError: The store cannot be opened.
    """
    from results.store.store import Store

    if (file := _sqlite_file(where.store)) is not None:
        base = file.parent
        try:
            base.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{base}: cannot be made ({error.strerror}); choose another path with --store") from error
    return Store(where.store, where.artifacts)


@contextmanager
def with_writable_cache(where: StoragePaths) -> Iterator[StoragePaths]:
    """Yield the paths; if the folder of the cache cannot be written, with a temporary folder in its place."""
    existing = next(folder for folder in (where.cache, *where.cache.absolute().parents) if folder.exists())
    if os.access(existing, os.W_OK):
        yield where
        return
    with tempfile.TemporaryDirectory() as folder:
        yield replace(where, cache=Path(folder))


def existing_store_at(store: str, artifacts: Path | None) -> Store | None:
    """Open the store that `--store` names; return None if there is none yet."""
    return existing_store(storage_paths(store, artifacts, None, None))


def opened_store(store: str, artifacts: Path | None, hint: str = "") -> Store:
    """Open the store that `--store` names."""
    opened = existing_store_at(store, artifacts)
    if opened is None:
        remedy = "make one with `reproduce run`, or name another with --store"
        from results.store.urls import shown_url

        raise InputError(f"{shown_url(store)}: there is no store yet; {remedy}{hint}")
    return opened
