"""Checks the files of a store: checkpoints, recordings, figure data and kept sources."""

import re
from collections.abc import Iterator
from pathlib import Path

from protocols.progress import Progress
from protocols.users_code.kept import is_whole
from results.records.artifacts import weights_path
from results.store.check import CheckedRecords, StoreFault
from results.whole_files import is_sound

SOURCES = "sources"
"""Folder of the copies of users' source files, below the folder of artifacts."""

_OF_A_TRAINING = re.compile(r"([0-9a-f]{32})\.(pt|last\.pt|proxies\.pt|recording\.npz)")
_OF_A_RUN = re.compile(r"([0-9a-f]{32})\.npz")
_DIGEST = re.compile(r"[0-9a-f]{16}")


def owner_of(name: Path) -> str | None:
    """Return what a file, named from the folder of artifacts, belongs to.

    That is the fingerprint of a training or of a test evaluation, or the hash of a user's source; None if the suite
    writes no file of this name.
    """
    folder, *below = name.parts or ("",)
    if folder == SOURCES and len(below) > 1 and _DIGEST.fullmatch(below[0]) and ".." not in below:
        return below[0]
    if len(below) != 1:
        return None
    match = (_OF_A_RUN if folder == "figure_data" else _OF_A_TRAINING).fullmatch(below[0])
    return match[1] if match and folder in ("figure_data", below[0][:2]) else None


def is_checkpoint(name: Path) -> bool:
    """Return whether a file holds weights, proxies or recordings of a training, and not data for a page."""
    return name.parts[0] not in (SOURCES, "figure_data")


def files_below(artifacts: Path) -> list[Path]:
    """Return the names of all files, from the folder of artifacts, sorted."""
    return [path.relative_to(artifacts) for path in sorted(artifacts.rglob("*")) if path.is_file()]


def check_files(records: CheckedRecords, artifacts: Path, progress: Progress | None = None) -> Iterator[StoreFault]:
    """Read every file in the folder of artifacts, and yield what is damaged or foreign."""
    names = files_below(artifacts)
    for number, name in enumerate(names):
        yield from _check_file(artifacts, name, records)
        if progress is not None:
            progress(number + 1, len(names))


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


def _check_file(artifacts: Path, name: Path, records: CheckedRecords) -> Iterator[StoreFault]:
    owner, path = owner_of(name), artifacts / name
    if owner is None:
        yield StoreFault("foreign", str(path), "the suite writes no file of this name")
    elif name.parts[0] == SOURCES:
        folder = artifacts / SOURCES / owner
        if not is_whole(folder):
            yield StoreFault(
                "damaged", str(path), "the files in its folder do not have the hash that is the folder's name"
            )
    elif owner not in (records.specs if is_checkpoint(name) else records.runs):
        yield StoreFault("foreign", str(path), "no record in the store has this name")
    elif not is_sound(path):
        yield StoreFault("damaged", str(path), "cannot be loaded: it is cut short, or a checksum in it is wrong")
