"""Where results, checkpoints and output are kept, and how the store and the studies are opened. Needs no torch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from reproduce.errors import InputError
from results.store import Store, StoreError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


@dataclass(frozen=True)
class StoragePaths:
    """Where a run keeps what it reads and writes.

    Attributes:
        store: SQLAlchemy URL of the store.
        artifacts: folder of the checkpoints.
        cache: folder of the packed images.
        tables: folder that tables are written to.
        reports: folder that pages are written to.
    """

    store: str
    artifacts: Path
    cache: Path
    tables: Path
    reports: Path

    def absolute(self) -> "StoragePaths":
        """The same folders as absolute paths, for processes that start in another folder.

        The store's URL stays as it is, since only this process writes to the store.
        """
        return replace(self, artifacts=self.artifacts.absolute(), cache=self.cache.absolute())


def storage_paths(store: str, artifacts: Path | None, cache: Path | None, tables: Path | None) -> StoragePaths:
    """The paths of a run; folders that are not given lie beside the store.

    Args:
        store: a file or a SQLAlchemy URL.
        artifacts: folder of the checkpoints, or None.
        cache: folder of the packed images, or None.
        tables: folder for tables, or None.
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
    """The folder in which a store (a file or a URL) lies; `runs` for the URL of a database server."""
    if "://" in store and not store.startswith("sqlite:///"):
        return Path("runs")
    return Path(store.removeprefix("sqlite:///")).parent


def existing_store(where: StoragePaths) -> Store | None:
    """The store, or None if it would be a new file."""
    file = where.store.removeprefix("sqlite:///").partition("?")[0]
    return open_store(where) if "://" in file or Path(file).exists() else None


def open_store(where: StoragePaths) -> Store:
    """The store, made if there is none; raises StoreError, InputError."""
    if where.store.startswith("sqlite:///"):
        base = Path(where.store.removeprefix("sqlite:///")).parent
        try:
            base.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{base}: cannot be made ({error.strerror}); choose another place with --store") from error
    return Store(where.store, where.artifacts)


@contextmanager
def studies_in_one_line(where: StoragePaths) -> Iterator[None]:
    """Turns a study that cannot be read or written, on a full disk for instance, into a StoreError."""
    from optuna.exceptions import StorageInternalError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        reason = str(getattr(error.__cause__ or error, "orig", None) or error).splitlines()[0]
        raise StoreError(f"store {where.store}: {reason}; what was stored before is kept") from error


def open_studies(where: StoragePaths) -> "BaseStorage":
    """Optuna's storage at the same URL; raises StoreError."""
    import optuna

    # A second process that reads (a dashboard) must not make a write fail.
    arguments = {"connect_args": {"timeout": 60}} if where.store.startswith("sqlite") else {}
    try:
        return optuna.storages.RDBStorage(where.store, engine_kwargs=arguments)
    except (SQLAlchemyError, RuntimeError) as error:
        raise StoreError(f"store {where.store}: Optuna cannot use it ({str(error).splitlines()[0]})") from error


def existing_store_at(store: str, artifacts: Path | None) -> Store | None:
    """The store that `--store` names, or None if there is none yet."""
    return existing_store(storage_paths(store, artifacts, None, None))


def opened_store(store: str, artifacts: Path | None, hint: str = "") -> Store:
    """The store that `--store` names; raises InputError, with a hint behind it, if there is none yet."""
    opened = existing_store_at(store, artifacts)
    if opened is None:
        said = f"{store}: no store here yet; make one with `reproduce run`, or name another with --store"
        raise InputError(f"{said}{hint}")
    return opened
