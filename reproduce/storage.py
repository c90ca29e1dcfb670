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
from results.store.urls import StorePlace, shown_url, store_place

if TYPE_CHECKING:
    from results.store.store import Store


_EXAMPLE = "runs/store.sqlite"


@dataclass(frozen=True)
class StoragePaths:
    """The paths that a run reads and writes.

    Attributes:
        store: File of the store, or its SQLAlchemy URL with the password; messages show `shown_store`.
        artifacts: Folder of the checkpoints.
        cache: Folder of the decoded images.
        tables: Folder that tables are written to.
        reports: Folder that pages are written to.
    """

    store: StorePlace = field(repr=False)
    artifacts: Path
    cache: Path
    tables: Path
    reports: Path

    @property
    def shown_store(self) -> str:
        """The file of the store, or its URL with its password hidden."""
        return shown_url(self.store)

    def absolute(self) -> StoragePaths:
        """Return a copy with absolute paths, for processes that start in another folder.

        The store's URL does not change, since only this process writes to the store.
        """
        return replace(self, artifacts=self.artifacts.absolute(), cache=self.cache.absolute())


def storage_paths(store: str, artifacts: Path | None, cache: Path | None, tables: Path | None) -> StoragePaths:
    """Return the paths of a run for a file or a SQLAlchemy URL. Folders that are None are placed beside the store."""
    place = store_place(store)
    _refuse_store_in_memory(store, place)
    base = beside(place)
    return StoragePaths(
        place,
        artifacts or base / "artifacts",
        cache or base / "cache",
        tables or base / "tables",
        base / "reports",
    )


def _refuse_store_in_memory(store: str, place: StorePlace) -> None:
    """Refuse a store without a file. SQLite would hold it in memory, and nothing would be kept."""
    if isinstance(place, Path):
        in_memory = store.strip() in ("", ":memory:", "file::memory:")
    else:
        dialect, _, rest = place.partition("://")
        file = rest.removeprefix("/").partition("?")[0].strip()
        in_memory = dialect.startswith("sqlite") and (not file or ":memory:" in file or "mode=memory" in rest)
    if in_memory:
        raise InputError(f"--store {store!r}: names no file, so nothing would be kept; name one, such as {_EXAMPLE}")


def beside(store: StorePlace) -> Path:
    """Return the folder that contains a store; `runs` for a database server."""
    file = store_file(store)
    return Path("runs") if file is None else file.parent


def store_file(store: StorePlace) -> Path | None:
    """Return the file of a SQLite store; None for a database server."""
    if isinstance(store, Path):
        return store
    if not store.startswith("sqlite"):
        return None
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(store)
    except (ArgumentError, ValueError):
        return None  # Opening it says what is wrong.
    return Path((url.database or "").removeprefix("file:" if "uri" in url.query else ""))


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
    file = store_file(where.store)
    return file is None or file.exists()


def open_store(where: StoragePaths) -> Store:
    """Open the store, and make it if there is none.

    Raises:
        InputError: The store's folder cannot be made.
        StoreError: The store cannot be opened.
    """
    from results.store.store import Store

    if (file := store_file(where.store)) is not None:
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
        raise InputError(f"{shown_url(store_place(store))}: there is no store yet; {remedy}{hint}")
    return opened
