"""`reproduce store`: checks, merges, exports and imports stores."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError
from reproduce.storage import StoragePaths, opened_store, storage_paths, store_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reproduce.store_care.merge_stores import Merged
    from results.store.findings import Finding
    from results.store.merge_records import Conflict
    from results.store.patience import LockWait

app = typer.Typer(
    name="store",
    help="Check a store, merge two stores, or write a store into one file and read it again.",
    no_args_is_help=True,
)

RecordsOnly = Annotated[
    bool, typer.Option("--records-only", help="Do not look at checkpoints, for a store that was copied without them.")
]
Keep = Annotated[
    bool,
    typer.Option("--keep-first", help="Where both have a different result, keep the one that is in the store already."),
]


@app.command()
def check(records_only: RecordsOnly = False, store: StoreAt = STORE, artifacts: Artifacts = None) -> None:
    """Read every record and load every checkpoint, and name what is damaged, missing or foreign.

    Ends with exit status 1 if something is damaged or missing. Nothing in the store is changed.
    """
    from reproduce.monitoring.bars import Bars
    from results.store.check_records import check_records
    from results.store.database import Database

    where = _existing(store, artifacts)
    console = output_console()
    with Bars(console) as bars:
        database = Database(where.store)
        database.lock_wait = _waits()
        records = check_records(database, bars.of("reading records"))
        findings = list(records.findings)
        if not records_only:
            from reproduce.store_care.check_files import check_files

            findings += check_files(records, where.artifacts, bars.of("loading checkpoints"))
    for finding in findings:
        say(console, f"{finding.kind}: {finding.name}: {finding.reason}")
    say(console, _summary(findings, records.records, records_only=records_only))
    if any(finding.kind != "foreign" for finding in findings):
        raise typer.Exit(1)


@app.command()
def merge(
    into: Annotated[str, typer.Argument(metavar="A", help="Store that gets the records: a file or a SQLAlchemy URL.")],
    other: Annotated[str, typer.Argument(metavar="B", help="Store that they come from; it is only read.")],
    keep_first: Keep = False,
    artifacts: Annotated[
        Path | None, typer.Option("--artifacts", help="Folder of A's checkpoints. Default: beside A.")
    ] = None,
    other_artifacts: Annotated[
        Path | None, typer.Option("--other-artifacts", help="Folder of B's checkpoints. Default: beside B.")
    ] = None,
) -> None:
    """Add what store B holds to store A, by fingerprint.

    If the two have different results under one fingerprint, all of these are named, nothing is merged, and the exit
    status is 1.
    """
    from reproduce.monitoring.bars import Bars
    from reproduce.store_care.merge_stores import ConflictError, merge_stores

    opened_store(other, other_artifacts)
    first, second = storage_paths(into, artifacts, None, None), storage_paths(other, other_artifacts, None, None)
    if _same_store(first, second):
        raise InputError(f"{other}: both are the same store; name two")
    with Bars(output_console()) as bars:
        try:
            progress = bars.of("copying files")
            merged = merge_stores(first, second, keep_first=keep_first, progress=progress, lock_wait=_waits())
        except ConflictError as error:
            _refuse(error.conflicts, into)
    _say_merged(merged, into)


@app.command("export")
def export_to(
    file: Annotated[Path, typer.Argument(help="The zip file to write.")],
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="Add the checkpoints.")] = False,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Write records, searches and the data of pages into one file, to attach to a paper or to keep."""
    from reproduce.monitoring.bars import Bars
    from reproduce.store_care.store_file import export_store

    where = _existing(store, artifacts)
    with Bars(output_console()) as bars:
        size = export_store(where, file, checkpoints=checkpoints, progress=bars.of("writing files"))
    say(output_console(), f"written to {file}: {size:,} bytes, {'with' if checkpoints else 'without'} checkpoints")


@app.command("import")
def import_from(
    file: Annotated[Path, typer.Argument(help="A file that `store export` wrote.")],
    keep_first: Keep = False,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Check a file that `store export` wrote, and merge what it holds into the store; see `store merge`."""
    from reproduce.monitoring.bars import Bars
    from reproduce.store_care.merge_stores import ConflictError
    from reproduce.store_care.store_file import import_store

    where = storage_paths(store, artifacts, None, None)
    with Bars(output_console()) as bars:
        try:
            progress = bars.of("copying files")
            merged = import_store(file, where, keep_first=keep_first, progress=progress, lock_wait=_waits())
        except ConflictError as error:
            _refuse(error.conflicts, store)
    _say_merged(merged, store)


def _existing(store: str, artifacts: Path | None) -> StoragePaths:
    opened_store(store, artifacts)
    return storage_paths(store, artifacts, None, None)


def _waits() -> LockWait:
    from results.store.patience import LockWait

    return LockWait(partial(say, output_console()))


def _same_store(first: StoragePaths, second: StoragePaths) -> bool:
    files = [file for file in (store_file(first.store), store_file(second.store)) if file is not None and file.exists()]
    return first.store == second.store or (len(files) == 2 and files[0].samefile(files[1]))


def _summary(findings: list[Finding], records: int, *, records_only: bool) -> str:
    counts = {kind: sum(finding.kind == kind for finding in findings) for kind in ("damaged", "missing", "foreign")}
    found = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    checked = "checkpoints were not checked" if records_only else "all files were loaded"
    return f"{records} record(s) read, {checked}: {found}"


def _say_conflicts(conflicts: Iterable[Conflict]) -> None:
    for conflict in conflicts:
        say(output_console(), f"conflict: {conflict.name}: {conflict.reason}")


def _refuse(conflicts: tuple[Conflict, ...], into: str) -> NoReturn:
    _say_conflicts(conflicts)
    say(
        output_console(),
        f"{len(conflicts)} conflict(s), so nothing was merged; --keep-first keeps the version in {into}",
    )
    raise typer.Exit(1)


def _say_merged(merged: Merged, into: str) -> None:
    _say_conflicts(merged.conflicts)
    kept = f"; {len(merged.conflicts)} conflict(s), {into} keeps its version" if merged.conflicts else ""
    say(
        output_console(),
        f"added to {into}: {merged.trainings} training(s), {merged.runs} test evaluation(s), {merged.experiments} "
        f"experiment(s), {merged.studies} search(es), {merged.files} file(s){kept}",
    )
