"""Copies of users' files beside the checkpoints, so that stored models can be used after the files are gone."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from protocols.users_code.sources import SourceError, UsersSource, known_sources, locate_module, remember_sources
from results.atomic_files import write_atomically
from results.spec.component import SourceName

_KEPT = "sources"
"""Folder of the copies below that of the checkpoints."""


def keep_sources(artifacts: Path) -> None:
    """Copy the users' files that this process knows to `sources/HASH` in the folder of the artifacts, once each."""
    for digest, source in known_sources().items():
        folder = artifacts / _KEPT / digest
        # Files that have changed meanwhile are not copied; no training uses such a source.
        if source.root != folder and not is_whole(folder) and source.digest() == digest:
            shutil.rmtree(folder, ignore_errors=True)
            for name in source.files:
                write_atomically(folder / name, (source.root / name).read_bytes())


def is_whole(folder: Path) -> bool:
    """Whether a copy has the hash that its folder is named by."""
    return UsersSource(folder, "", _files_in(folder)).digest() == folder.name


def remember_kept_sources(artifacts: Path, names: Iterable[str]) -> None:
    """Remember where the kept copies of files are, by names with hashes. Sources without a copy are left out.

    A module is imported from where it is installed, as long as its files there are still those of the copy.
    """
    for parsed in filter(None, map(SourceName.parse, names)):
        folder = (artifacts / _KEPT / (parsed.digest or "none")).absolute()
        if not is_whole(folder):
            continue
        source = UsersSource(folder, parsed.source, _files_in(folder))
        if not parsed.in_file:
            try:
                here = locate_module(parsed.source)
            except SourceError:  # Reported when it is used.
                continue
            source = UsersSource(here.root, here.main, source.files)
        remember_sources({str(parsed.digest): source})


def _files_in(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
