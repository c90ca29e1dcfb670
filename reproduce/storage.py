"""Paths of results, checkpoints and output; functions that open the store and the studies. Works without torch.

SQLAlchemy and Optuna are imported by the functions that need them, so that `--help` does not wait for them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reproduce.errors import InputError
from results.store_error import StoreError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

    from results.store import Store


@dataclass(frozen=True)
class StoragePaths:
    """The paths that a run reads and writes.

    Attributes:
        store: SQLAlchemy URL of the store.
        artifacts: Folder of the checkpoints.
        cache: Folder of the decoded images.
        tables: Folder that tables are written to.
        reports: Folder that pages are written to.
    """

    store: str
    artifacts: Path
    cache: Path
    tables: Path
    reports: Path

    def absolute(self) -> StoragePaths:
        """Return a copy with absolute paths, for processes that start in another folder.

        The store's URL does not change, since only this process writes to the store.
        """
        return replace(self, artifacts=self.artifacts.absolute(), cache=self.cache.absolute())


def storage_paths(store: str, artifacts: Path | None, cache: Path | None, tables: Path | None) -> StoragePaths:
    """Return the paths of a run. Folders that are None are placed beside the store.

    Args:
        store: A file or a SQLAlchemy URL.
        artifacts: Folder of the checkpoints, or None.
        cache: Folder of the decoded images, or None.
        tables: Folder for tables, or None.
    """
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


def beside(store: str) -> Path:
    """Return the folder that contains a store (a file or a URL); `runs` for the URL of a database server."""
    if "://" in store and not store.startswith("sqlite:///"):
        return Path("runs")
    return Path(store.removeprefix("sqlite:///")).parent


def existing_store(where: StoragePaths) -> Store | None:
    """Open the store; return None if its file does not exist."""
    file = where.store.removeprefix("sqlite:///").partition("?")[0]
    return open_store(where) if "://" in file or Path(file).exists() else None


def open_store(where: StoragePaths) -> Store:
    """Open the store, and make it if there is none.

    Raises:
        InputError: The store's folder cannot be made.
        StoreError: The store cannot be opened.
    """
    from results.store import Store

    if where.store.startswith("sqlite:///"):
        base = Path(where.store.removeprefix("sqlite:///")).parent
        try:
            base.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{base}: cannot be made ({error.strerror}); choose another path with --store") from error
    return Store(where.store, where.artifacts)


@contextmanager
def studies_in_one_line(where: StoragePaths) -> Iterator[None]:
    """Turn the error of a study that cannot be read or written, for instance on a full disk, into a StoreError."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        reason = str(getattr(error.__cause__ or error, "orig", None) or error).splitlines()[0]
        raise StoreError(f"store {where.store}: {reason}; what was stored before is kept") from error


def open_studies(where: StoragePaths) -> BaseStorage:
    """Open Optuna's storage at the URL of the store; raise StoreError if that is not possible."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    # The timeout lets a write wait for a second process that reads, for instance a dashboard.
    arguments = {"connect_args": {"timeout": 60}} if where.store.startswith("sqlite") else {}
    try:
        return optuna.storages.RDBStorage(where.store, engine_kwargs=arguments)
    except (SQLAlchemyError, RuntimeError) as error:
        raise StoreError(f"store {where.store}: Optuna cannot use it ({str(error).splitlines()[0]})") from error


def readable_studies(where: StoragePaths) -> BaseStorage | None:
    """Open Optuna's storage for reading; return None if the store has no studies yet. Nothing is written."""
    import sqlalchemy as sa

    engine = sa.create_engine(where.store)
    try:
        has_studies = sa.inspect(engine).has_table("alembic_version")
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(f"store {where.store}: {str(error).splitlines()[0]}") from error
    finally:
        engine.dispose()
    return open_studies(where) if has_studies else None


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
    """Open the store that `--store` names.

    Args:
        store: A file or a SQLAlchemy URL.
        artifacts: Folder of the checkpoints; None for the folder beside the store.
        hint: Text that is added to the error's message.

    Raises:
        InputError: There is no store yet.
    """
    opened = existing_store_at(store, artifacts)
    if opened is None:
        remedy = "make one with `reproduce run`, or name another with --store"
        raise InputError(f"{store}: there is no store yet; {remedy}{hint}")
    return opened
