"""Writes a store into one zip file, and reads such a file into a store.

The file holds `manifest.json` with size and SHA-256 of every other member, `store.sqlite` with records and searches,
and the files of the folder of artifacts below `artifacts/`.
"""

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from pydantic import Field, ValidationError

from protocols.progress import Progress
from reproduce.errors import InputError
from reproduce.storage import StoragePaths, storage_paths
from reproduce.store_care.check_files import is_checkpoint, owner_of
from reproduce.store_care.merge_stores import Merged, merge_stores
from results.store.patience import LockWait
from results.values import Record
from results.whole_files import partial_name, put_in_place

MANIFEST, STORE, ARTIFACTS = "manifest.json", "store.sqlite", "artifacts"
FORMAT = 1
_BLOCK = 1 << 20
_LARGEST_MANIFEST = 64 << 20


class Member(Record):
    """Size in bytes and hash of a file in the zip file."""

    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(Record):
    """The version of the layout of a store's file, and its members by name."""

    format: int
    members: dict[str, Member]


def export_store(
    where: StoragePaths, file: Path, *, checkpoints: bool = False, progress: Progress | None = None
) -> int:
    """Write records, searches and the data of pages of a store into one file; return its size in bytes.

    The file must not exist; it is complete or not there. The tables do not need the checkpoints.
    """
    if file.exists():
        raise InputError(f"{file}: exists already; choose another name")
    with tempfile.TemporaryDirectory() as folder:
        # A store in a database server becomes a file as well.
        copy = storage_paths(str(Path(folder) / STORE), None, None, None)
        merge_stores(copy, _without_files(where, Path(folder)))
        members = {STORE: Path(folder) / STORE, **_artifacts(where.artifacts, checkpoints=checkpoints)}
        partial = partial_name(file.absolute())
        try:
            _write_zip(partial, members, progress)
            put_in_place(partial, file.absolute())
        finally:
            partial.unlink(missing_ok=True)
    return file.stat().st_size


def import_store(
    file: Path,
    into: StoragePaths,
    *,
    keep_first: bool = False,
    progress: Progress | None = None,
    lock_wait: LockWait | None = None,
) -> Merged:
    """Check a file that `export_store` wrote, and merge what it holds into a store, as `merge_stores` does.

    Nothing is written if the file is damaged or not of this kind.
    """
    with _one_line(file), tempfile.TemporaryDirectory() as folder:
        other = unpack_store(file, Path(folder))
        return merge_stores(into, other, keep_first=keep_first, progress=progress, lock_wait=lock_wait)


def unpack_store(file: Path, folder: Path) -> StoragePaths:
    """Check a file that `export_store` wrote, and unpack it into a folder; return the paths of the store there.

    A file that is damaged or not of this kind is refused in one line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _one_line(file), zipfile.ZipFile(file) as archive:
        _unpack(archive, folder)
    return storage_paths(str(folder / STORE), folder / ARTIFACTS, None, None)


def _without_files(where: StoragePaths, empty: Path) -> StoragePaths:
    """Return the paths of a store with an empty folder of artifacts: the files are added to the zip file directly."""
    return replace(where, artifacts=empty / ARTIFACTS)


def _artifacts(folder: Path, *, checkpoints: bool) -> dict[str, Path]:
    names = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    wanted = [name for name in names if owner_of(name) and (checkpoints or not is_checkpoint(name))]
    return {f"{ARTIFACTS}/{name.as_posix()}": folder / name for name in wanted}


def _write_zip(path: Path, members: Mapping[str, Path], progress: Progress | None) -> None:
    described: dict[str, Member] = {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, file) in enumerate(members.items()):
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED if name == STORE else zipfile.ZIP_STORED
            with file.open("rb") as source, archive.open(info, "w", force_zip64=True) as target:
                described[name] = _copy(source, target.write)
            if progress is not None:
                progress(number + 1, len(members))
        manifest = Manifest(format=FORMAT, members=described)
        archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(manifest.model_dump(mode="json"), indent=1))


def _copy(source: IO[bytes], write: Callable[[bytes], object], limit: int | None = None) -> Member:
    """Copy a stream and return its size and hash. A stream that is longer than `limit` is not read to its end."""
    size, digest = 0, hashlib.sha256()
    while (limit is None or size <= limit) and (block := source.read(_BLOCK)):
        write(block)
        digest.update(block)
        size += len(block)
    return Member(size=size, sha256=digest.hexdigest())


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    manifest = _read_manifest(archive)
    for name in manifest.members:
        path = Path(name)
        if name != STORE and not (path.parts[0] == ARTIFACTS and owner_of(path.relative_to(ARTIFACTS))):
            raise InputError(f"{archive.filename}: {name!r} is no file of a store; nothing was imported")
    needed = sum(member.size for member in manifest.members.values())
    if needed > (free := shutil.disk_usage(folder).free):
        raise InputError(f"{archive.filename}: needs {needed:,} bytes in {folder.parent}, {free:,} are free")
    for name, member in manifest.members.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as source, target.open("wb") as file:
            if _copy(source, file.write, member.size) != member:
                raise InputError(
                    f"{archive.filename}: {name} has not the content that the manifest says; copy it again"
                )


def _read_manifest(archive: zipfile.ZipFile) -> Manifest:
    if archive.getinfo(MANIFEST).file_size > _LARGEST_MANIFEST:
        raise InputError(f"{archive.filename}: {MANIFEST} is too large for a list of files; nothing was imported")
    manifest = Manifest.model_validate_json(archive.read(MANIFEST))
    if manifest.format != FORMAT or STORE not in manifest.members:
        raise InputError(f"{archive.filename}: written by another release; import it with that release")
    return manifest


@contextmanager
def _one_line(file: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, KeyError, ValidationError, EOFError, NotImplementedError, RuntimeError) as error:
        reason = "not a whole file of `reproduce store export`; copy it again"
        raise InputError(f"{file}: {reason} ({type(error).__name__})") from error
