"""Merges one store into another: files first, then records and searches, so that a merge can be repeated."""

import shutil
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from protocols.progress import Progress
from reproduce.errors import InputError
from reproduce.storage import StoragePaths, open_store, store_to_read
from reproduce.store_care.check_files import SOURCES, check_loaded, owner_of
from results.store.check_records import check_records
from results.store.database import Database
from results.store.findings import Finding
from results.store.merge_records import Conflict, apply_merge, plan_merge
from results.store.patience import LockWait
from results.store.schema import EXPERIMENTS, FOLD_RESULTS, RUNS
from results.whole_files import partial_name, put_in_place


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge.

    Attributes:
        trainings: Number of trainings that were added.
        runs: Number of test evaluations that were added.
        experiments: Number of experiments that were added.
        studies: Number of searches that were added or continued.
        files: Number of files that were copied.
        conflicts: What the stores disagree about; the first store's version stayed.
    """

    trainings: int
    runs: int
    experiments: int
    studies: int
    files: int
    conflicts: tuple[Conflict, ...]


class ConflictError(Exception):
    """Two stores disagree, and nothing was merged."""

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        super().__init__(f"{len(conflicts)} conflict(s)")
        self.conflicts = conflicts


def merge_stores(
    into: StoragePaths,
    other: StoragePaths,
    *,
    keep_first: bool = False,
    progress: Progress | None = None,
    lock_wait: LockWait | None = None,
) -> Merged:
    """Add what another store, which is only read, holds to a store; it is made if there is none.

    The other store first passes the check of `reproduce store check`. `keep_first` keeps the first store's version
    where the two disagree. Without `lock_wait` a merge that meets a locked SQLite file fails after a minute.

    Raises:
        ConflictError: The stores disagree and `keep_first` is not set. Nothing was written.
        InputError: The other store has a record or a file that is damaged, or lacks a record. Nothing was written.
        StoreError: A store cannot be read or written.
    """
    source = Database(other.store, only_read=True)
    source.lock_wait = lock_wait or LockWait()
    checked = check_records(source)
    _refuse(other, [finding for finding in checked.findings if finding.kind != "foreign"])
    records = plan_merge(_database_or_empty(into, source.lock_wait), source)
    conflicts = tuple(records.conflicts)
    if conflicts and not keep_first:
        raise ConflictError(conflicts)
    files = list(_files_to_copy(into.artifacts, other.artifacts, records.files_of))
    loaded = check_loaded(checked, other.artifacts, [other.artifacts / name for name in files])
    _refuse(other, [finding for finding in loaded if finding.kind == "damaged"])
    open_store(into)
    target = Database(into.store)
    target.lock_wait = source.lock_wait
    for number, name in enumerate(files):
        copy_whole(other.artifacts / name, into.artifacts / name)
        if progress is not None:
            progress(number + 1, len(files))
    apply_merge(target, records)
    return Merged(
        records.added(FOLD_RESULTS),
        records.added(RUNS),
        records.added(EXPERIMENTS),
        records.continued_studies,
        len(files),
        conflicts,
    )


def _database_or_empty(where: StoragePaths, lock_wait: LockWait) -> Database:
    """Return the database of a store, to read it. An empty one in memory stands for a store that is not made yet."""
    database = Database("sqlite://") if store_to_read(where) is None else Database(where.store, only_read=True)
    database.lock_wait = lock_wait
    return database


def _refuse(other: StoragePaths, findings: list[Finding]) -> None:
    if findings:
        first = findings[0]
        raise InputError(
            f"{other.shown_store}: {len(findings)} damaged or missing record(s) or file(s), so nothing was written; "
            f"the first is {first.name}: {first.reason}; `reproduce store check` lists all"
        )


def _files_to_copy(into: Path, other: Path, fingerprints: Set[str]) -> Iterator[Path]:
    """Yield the paths of the files that the first store lacks, below the folders of artifacts."""
    for path in sorted(other.rglob("*")):
        name = path.relative_to(other)
        is_wanted = owner_of(name) in fingerprints or (owner_of(name) and name.parts[0] == SOURCES)
        if is_wanted and path.is_file() and not (into / name).exists():
            yield name


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file in one step: the target is complete or does not exist."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_name(target)
    try:
        shutil.copyfile(source, partial)
        put_in_place(partial, target)
    finally:
        partial.unlink(missing_ok=True)
