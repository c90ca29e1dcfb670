"""Writes a store into one zip file, and reads such a file into a store.

The file holds `store.sqlite` and the files of the folder of artifacts below `artifacts/`. The checksums of its members
and the hashes of the store's rows tell whether it is whole.
"""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protocols.progress import Progress
from reproduce.errors import InputError
from reproduce.storage import StoragePaths, storage_paths
from reproduce.store_care.check_files import files_below, is_checkpoint, owner_of
from reproduce.store_care.merge_stores import Merged, merge_stores, refuse_damaged
from results.store.database import Database
from results.whole_files import BAD_ZIP, partial_name, put_in_place

STORE, ARTIFACTS = "store.sqlite", "artifacts"


def export_store(
    where: StoragePaths, file: Path, *, checkpoints: bool = False, progress: Progress | None = None
) -> int:
    """Write records, searches and the data of pages of a store into one file; return its size in bytes.

    The file must not exist; it is complete or not there. The tables do not need the checkpoints.
    """
    if file.exists():
        raise InputError(f"{file}: exists already; choose another name")
    source = Database(where.store)
    refuse_damaged(source, where.artifacts)
    names = [name for name in files_below(where.artifacts) if owner_of(name)]
    names = [name for name in names if checkpoints or not is_checkpoint(name)]
    partial = partial_name(file.absolute())
    try:
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(partial, "w") as archive:
            source.copy_to(Path(folder) / STORE)
            archive.write(Path(folder) / STORE, STORE, zipfile.ZIP_DEFLATED)
            for number, name in enumerate(names):
                archive.write(where.artifacts / name, f"{ARTIFACTS}/{name.as_posix()}")
                if progress is not None:
                    progress(number + 1, len(names))
        put_in_place(partial, file.absolute())
    finally:
        partial.unlink(missing_ok=True)
    return file.stat().st_size


def import_store(
    file: Path, into: StoragePaths, *, keep_first: bool = False, progress: Progress | None = None
) -> Merged:
    """Check a file that `export_store` wrote, and merge what it holds into a store, as `merge_stores` does.

    Nothing is written if the file is damaged or not of this kind.
    """
    with tempfile.TemporaryDirectory() as folder:
        other = unpack_store(file, Path(folder))
        return merge_stores(into, other, keep_first=keep_first, progress=progress)


def unpack_store(file: Path, folder: Path) -> StoragePaths:
    """Unpack a file that `export_store` wrote into a folder; return the paths of the store there.

    A file that is damaged or not of this kind is refused in one line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _one_line(file), zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            path = Path(name)
            if name != STORE and not (path.parts[:1] == (ARTIFACTS,) and owner_of(path.relative_to(ARTIFACTS))):
                raise InputError(f"{file}: {name!r} is no file of a store; nothing was imported")
        archive.getinfo(STORE)
        archive.extractall(folder)
    return storage_paths(str(folder / STORE), None, None, None)


@contextmanager
def _one_line(file: Path) -> Iterator[None]:
    """Raise what readers of zip files raise for a damaged one as one line."""
    try:
        yield
    except (*BAD_ZIP, KeyError) as error:
        reason = "not a whole file of `reproduce store export`; copy it again"
        raise InputError(f"{file}: {reason} ({type(error).__name__})") from error
