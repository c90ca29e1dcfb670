"""The files beside a store's rows: checks and merges stores, writes a store into one zip file and reads such a file.

The zip file holds `store.sqlite` and the files of the folder of artifacts below `artifacts/`. The checksums of its
members and the hashes of the store's rows tell whether it is whole.
"""

import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from protocols.images.packing import Progress
from protocols.users_code.kept import is_whole
from reproduce.errors import InputError
from reproduce.storage import StoragePaths, open_store, storage_paths
from results.atomic_files import BAD_ZIP, atomic_file, is_sound, write_atomically
from results.records.artifacts import early_path, last_epoch_path, weights_path
from results.store.check import CheckedRecords, StoreFault, add_rows, check_records, conflicts
from results.store.database import Database
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted

STORE, ARTIFACTS = "store.sqlite", "artifacts"
SOURCES, DATASETS = "sources", "datasets"
"""Folders below the artifacts: copies of users' source files, contents of datasets."""


def files_of(records: CheckedRecords, names: Iterable[Path]) -> list[Path]:
    """Return those names of files, from the folder of artifacts, that belong to records or are users' sources."""
    weights = [weights_path(Path(), spec) for spec in records.specs.values()]
    known = {*weights, *map(last_epoch_path, weights), *map(early_path, weights)}
    return [name for name in names if name in known or _is_source(name) or name.parts[0] == DATASETS]


def _files_below(artifacts: Path) -> list[Path]:
    """Return the names of all files, from the folder of artifacts, sorted."""
    return [path.relative_to(artifacts) for path in sorted(artifacts.rglob("*")) if path.is_file()]


def _is_source(name: Path) -> bool:
    return name.parts[0] == SOURCES and len(name.parts) > 2


def check_files(records: CheckedRecords, artifacts: Path, progress: Progress | None = None) -> Iterator[StoreFault]:
    """Read every file in the folder of artifacts, and yield what is damaged or foreign."""
    names = _files_below(artifacts)
    known = set(files_of(records, names))
    for number, name in enumerate(names, start=1):
        path = artifacts / name
        if progress is not None:
            progress(number, len(names))
        if name not in known:
            lost = "; was store.sqlite copied without its -wal?" if name.suffix == ".pt" else ""
            yield StoreFault("foreign", str(path), f"it belongs to no record in the store{lost}")
        elif _is_source(name):
            if not is_whole(artifacts / SOURCES / name.parts[1]):
                reason = "the files in its folder do not have the hash that is the folder's name"
                yield StoreFault("damaged", str(path), reason)
        elif name.parts[0] != DATASETS and not is_sound(path):
            yield StoreFault("damaged", str(path), "cannot be loaded: it is cut short, or a checksum in it is wrong")


class Kept(NamedTuple):
    """Searches that come with the suite: names of their record and experiment, and the methods that changed since."""

    record: str
    experiment: str
    changed: tuple[str, ...]


KEPT = {"fourteen": Kept("reality_check_glyphs", "reality_check/glyphs", ("arcface",))}
"""By the names that `store import` takes in place of a file."""


def kept_methods(kept: Kept) -> list[str]:
    """Return the methods whose trainings a run finds once the searches are imported."""
    titles = MeasuredExperiment.kept(kept.record).plan.titles
    return [method for method in titles if method not in kept.changed]


def missing_checkpoints(records: CheckedRecords, artifacts: Path) -> Iterator[StoreFault]:
    """Look for the checkpoints of all test evaluations, and yield those that are missing."""
    if records.runs and not artifacts.is_dir():
        yield StoreFault("missing", f"folder {artifacts}", "it has the checkpoints; name it with --artifacts")
        return
    for record in records.runs.values():
        for fingerprint in record.fold_fingerprints:
            spec = records.specs.get(fingerprint)
            if spec is not None and not (path := weights_path(artifacts, spec)).is_file():
                yield StoreFault(
                    "missing", str(path), f"checkpoint of {record.method}, {record.name}, fold {spec.fold}"
                )


def _checked(source: Database, artifacts: Path) -> CheckedRecords:
    """Check a store; raise InputError if it has a damaged row or file, or lacks a row that another one needs."""
    checked = check_records(source)
    findings = [finding for finding in checked.faults if finding.kind != "foreign"]
    findings += [finding for finding in check_files(checked, artifacts) if finding.kind == "damaged"]
    if findings:
        raise InputError(
            f"{source.file}: {counted(len(findings), 'fault')}, so nothing was written; the first is "
            f"{findings[0].name}: {findings[0].reason}; `reproduce store check` lists all"
        )
    return checked


def merge_stores(into: StoragePaths, other: StoragePaths) -> dict[str, int]:
    """Add what another store holds to a store, files first, so that it can be repeated; the store may be new.

    The other store, which is only read, first passes the check of `reproduce store check`, but may lack checkpoints.

    Returns:
        How many rows were added, by table, and how many files.

    Raises:
        InputError: The other store has a damaged row or file, or lacks a row, or the two have different results under
            one name. Nothing was written.
        StoreError: A store cannot be read or written.
    """
    source = Database(other.store)
    checked = _checked(source, other.artifacts)
    target = open_store(into).database
    if different := conflicts(target, source):
        raise InputError(
            f"{counted(len(different), 'conflict')}, so nothing was imported; import into a store of its own with "
            f"--store PATH; the two have different outcomes in {'; '.join(different)}"
        )
    new = [name for name in files_of(checked, _files_below(other.artifacts)) if not (into.artifacts / name).exists()]
    for name in new:
        write_atomically(into.artifacts / name, (other.artifacts / name).read_bytes())
    added = add_rows(target, source)
    return {**{table: added[table] for table in ("trainings", "runs", "experiments", "trials")}, "files": len(new)}


def export_store(where: StoragePaths, file: Path, *, checkpoints: bool = False) -> int:
    """Write records and searches of a store into one file; return its size in bytes.

    The file must not exist; it is complete or not there. The tables do not need the checkpoints.
    """
    if file.exists():
        raise InputError(f"{file}: exists already; choose another name")
    source = Database(where.store)
    names = files_of(_checked(source, where.artifacts), _files_below(where.artifacts))
    names = [name for name in names if checkpoints or name.parts[0] in (SOURCES, DATASETS)]
    with (
        atomic_file(file.absolute()) as partial,
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(partial, "w", strict_timestamps=False) as archive,  # Copies of files can be dated 1970.
    ):
        source.copy_to(Path(folder) / STORE)
        archive.write(Path(folder) / STORE, STORE, zipfile.ZIP_DEFLATED)
        for name in names:
            archive.write(where.artifacts / name, f"{ARTIFACTS}/{name.as_posix()}")
    return file.stat().st_size


def import_store(file: Path, into: StoragePaths) -> dict[str, int]:
    """Add a file that `export_store` wrote to a store. Nothing is written if it is damaged or not of this kind."""
    with tempfile.TemporaryDirectory() as folder:
        return merge_stores(into, unpack_store(file, Path(folder)))


def unpack_store(file: Path, folder: Path) -> StoragePaths:
    """Unpack a file that `export_store` wrote into a folder; return the paths of the store there.

    A file that is damaged or not of this kind is refused in one line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                parts = Path(name).parts
                if name != STORE and (parts[:1] != (ARTIFACTS,) or len(parts) < 2 or ".." in parts):
                    raise InputError(f"{file}: {name!r} is no file of a store; nothing was imported")
            archive.getinfo(STORE)
            archive.extractall(folder)
    except (*BAD_ZIP, KeyError) as error:
        reason = "not a whole file of `reproduce store export`; copy it again"
        raise InputError(f"{file}: {reason} ({type(error).__name__})") from error
    return storage_paths(str(folder / STORE))
