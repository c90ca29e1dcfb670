"""Merges one store into another: files first, then rows, so that a merge can be repeated."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from protocols.progress import Progress
from reproduce.errors import InputError
from reproduce.storage import StoragePaths, open_store
from reproduce.store_care.check_files import SOURCES, check_files, files_below, owner_of
from results.store.check import check_records
from results.store.database import Database
from results.store.exchange import Conflict, apply_merge, plan_merge
from results.whole_files import make_folder, partial_name, put_in_place


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge.

    Attributes:
        trainings: Number of trainings that were added.
        runs: Number of test evaluations that were added.
        experiments: Number of experiments that were added or started later.
        studies: Number of searches that got trials.
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
    into: StoragePaths, other: StoragePaths, *, keep_first: bool = False, progress: Progress | None = None
) -> Merged:
    """Add what another store holds to a store; it is made if there is none.

    The other store, which is only read, first passes the check of `reproduce store check`, but may lack checkpoints.
    `keep_first` keeps the first store's version where the two disagree.

    Raises:
        ConflictError: The stores disagree and `keep_first` is not set. Nothing was written.
        InputError: The other store has a damaged row or file, or lacks a row. Nothing was written.
        StoreError: A store cannot be read or written.
    """
    source = Database(other.store)
    refuse_damaged(source, other.artifacts)
    target = open_store(into).database
    merge = plan_merge(target, source)
    if merge.conflicts and not keep_first:
        raise ConflictError(tuple(merge.conflicts))
    wanted = [name for name in files_below(other.artifacts) if _is_wanted(name, merge.files_of())]
    new = [name for name in wanted if not (into.artifacts / name).exists()]
    for number, name in enumerate(new):
        _copy(other.artifacts / name, into.artifacts / name)
        if progress is not None:
            progress(number + 1, len(new))
    apply_merge(target, merge)
    return Merged(
        len(merge.rows["trainings"]),
        len(merge.rows["runs"]),
        len(merge.rows["experiments"]),
        len({row["study"] for row in merge.rows["trials"]}),
        len(new),
        tuple(merge.conflicts),
    )


def refuse_damaged(source: Database, artifacts: Path) -> None:
    """Raise InputError if a store has a damaged row or file, or lacks a row that another one needs."""
    checked = check_records(source)
    findings = [finding for finding in checked.faults if finding.kind != "foreign"]
    findings += [finding for finding in check_files(checked, artifacts) if finding.kind == "damaged"]
    if findings:
        raise InputError(
            f"{source.file}: {len(findings)} damaged or missing row(s) or file(s), so nothing was written; the first "
            f"is {findings[0].name}: {findings[0].reason}; `reproduce store check` lists all"
        )


def _is_wanted(name: Path, fingerprints: set[str]) -> bool:
    owner = owner_of(name)
    return owner is not None and (owner in fingerprints or name.parts[0] == SOURCES)


def _copy(source: Path, target: Path) -> None:
    """Copy a file atomically: the target is complete or does not exist."""
    make_folder(target.parent)
    partial = partial_name(target)
    try:
        shutil.copyfile(source, partial)
        put_in_place(partial, target)
    finally:
        partial.unlink(missing_ok=True)
