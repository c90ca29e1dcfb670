"""Paths of results, checkpoints and output; functions that open the store. Works without torch.

Files that show an experiment carry its identity, since experiments of one name can differ in methods, trials or
anything else: `NAME-IDENTITY.csv` and `NAME-IDENTITY/index.html` belong to one experiment; `NAME.csv` and
`NAME/index.html` lead to the one that the name means, the latest finished one.

The store is imported by the functions that open it, so that `--help` does not wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from reproduce.errors import InputError
from results.atomic_files import file_name, partial_name, put_in_place

if TYPE_CHECKING:
    from results.store.store import Store

_LEFT_SECONDS = 24 * 3600

_LONGEST_NAME = 180
"""Most bytes of an experiment's name in a file name, so that identity, suffix and a partial file's name fit in 255."""


@dataclass(frozen=True)
class StoragePaths:
    """The paths that a run reads and writes.

    Attributes:
        store: File of the store.
        artifacts: Folder of the checkpoints.
        cache: Folder of the decoded images.
    """

    store: Path
    artifacts: Path
    cache: Path

    @property
    def tables(self) -> Path:
        """Folder that tables are written to."""
        return self.store.parent / "tables"

    @property
    def reports(self) -> Path:
        """Folder that pages are written to."""
        return self.store.parent / "reports"

    def absolute(self) -> StoragePaths:
        """Return a copy with absolute paths, for processes in another folder, such as one that a loss changed."""
        return replace(self, artifacts=self.artifacts.absolute(), cache=self.cache.absolute())


def storage_paths(store: str, artifacts: Path | None = None, cache: Path | None = None) -> StoragePaths:
    """Return the paths of a run for a store. Folders that are None are placed beside the store."""
    from results.store.database import store_file

    file = store_file(store)
    return StoragePaths(file, artifacts or file.parent / "artifacts", cache or file.parent / "cache")


def existing_store(store: str, artifacts: Path | None = None) -> Store | None:
    """Open the store that `--store` names; return None if its file does not exist or is empty."""
    where = storage_paths(store, artifacts)
    return open_store(where) if where.store.exists() and where.store.stat().st_size else None


def open_store(where: StoragePaths) -> Store:
    """Open the store, and make it if there is none.

    Raises:
        InputError: The store's folder cannot be made.
        StoreError: The store cannot be opened.
    """
    from results.store.store import Store

    if where.store.is_dir():
        raise InputError(f"{where.store}: is a folder; name a file, such as --store {where.store / 'store.sqlite'}")
    base = where.store.parent
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{base}: cannot be made ({error.strerror}); choose another path with --store") from error
    return Store(where.store, where.artifacts)


def opened_store(store: str, artifacts: Path | None = None, hint: str = "") -> Store:
    """Open the store that `--store` names."""
    opened = existing_store(store, artifacts)
    if opened is None:
        remedy = "make one with `reproduce run`, or name another with --store"
        raise InputError(f"{store}: there is no store yet; {remedy}{hint}")
    return opened


@contextmanager
def only_run_of(where: StoragePaths, experiment: str) -> Iterator[None]:
    """Hold the lock of an experiment, which the system gives back if this process is killed.

    Raises:
        InputError: Another run of the experiment has it.
    """
    lock = FileLock(where.store.with_name(f".{where.store.name}.{experiment}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"{where.store}: another run of this experiment is using it; wait for its end, or stop it"
        ) from None
    try:
        _remove_leftovers(where)
        yield
    finally:
        lock.release()


def _remove_leftovers(where: StoragePaths) -> None:
    """Remove files that killed runs left half written; those of the last day may belong to a run beside this one."""
    for folder in (where.artifacts, where.tables, where.reports):
        for path in folder.rglob(".*.partial"):
            with suppress(OSError):
                if path.is_file() and time.time() - path.stat().st_mtime > _LEFT_SECONDS:
                    path.unlink()


def latest_name(name: str) -> str:
    """Return how the files of the latest experiment of a name are called, without their suffix."""
    return file_name(name).encode()[:_LONGEST_NAME].decode(errors="ignore")


def own_name(name: str, fingerprint: str) -> str:
    """Return how the files of one experiment are called, without their suffix."""
    from results.values import identity_of

    return f"{latest_name(name)}-{identity_of(fingerprint)}"


def link_latest(name: str, fingerprint: str, store: Store, paths: list[Path]) -> None:
    """Let the names without identity lead to files or folders of an experiment, if it is the one that its name means.

    There is no link where the file system has none, or where a folder has its name.
    """
    if store.latest_experiments().get(name) != fingerprint:
        return
    for path in paths:
        link = path.with_name(latest_name(name) + path.suffix)
        partial = partial_name(link)
        with suppress(OSError):
            partial.symlink_to(path.name, target_is_directory=path.is_dir())
            put_in_place(partial, link)
        partial.unlink(missing_ok=True)
