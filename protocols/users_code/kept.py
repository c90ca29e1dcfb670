"""Copies of users' files beside the checkpoints, so that stored models can be used after the files are gone."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from protocols.users_code.sources import (
    SourceError,
    UsersSource,
    digest_of,
    known_sources,
    locate_module,
    remember_sources,
)
from results.spec.source_names import SourceName
from results.whole_files import write_whole

_KEPT = "sources"
"""Folder of the copies below that of the checkpoints."""


def keep_sources(artifacts: Path) -> None:
    """Copy the users' files that this process knows to `sources/HASH` in the folder of the artifacts, once each."""
    for digest, source in known_sources().items():
        folder = artifacts / _KEPT / digest
        if source.root == folder or is_whole(folder):
            continue
        for name in source.files:
            if (source.root / name).is_file():
                write_whole(folder / name, (source.root / name).read_bytes())
        if not is_whole(folder):  # A file has changed meanwhile; no training uses such a source.
            shutil.rmtree(folder, ignore_errors=True)


def is_whole(folder: Path) -> bool:
    """Whether a copy has the hash that its folder is named by."""
    return folder.is_dir() and digest_of(folder, _files_in(folder)) == folder.name


def remember_kept_sources(artifacts: Path, names: Iterable[str]) -> None:
    """Remember the kept copies of the files that names with hashes mean. Sources without a copy are left out.

    A module is imported from where it is installed, as long as its files there are still those of the copy.
    """
    for name in names:
        parsed = SourceName.parse(name)
        folder = artifacts / _KEPT / (parsed.digest or "none") if parsed else artifacts
        if parsed is None or parsed.digest is None or not is_whole(folder):
            continue
        files = tuple(_files_in(folder))
        if parsed.in_file:
            remember_sources({parsed.digest: UsersSource(folder.absolute(), parsed.source, files)})
        else:
            try:
                here = locate_module(parsed.source)
            except SourceError:  # Told when it is used.
                continue
            remember_sources({parsed.digest: UsersSource(here.root, here.main, files)})


def _files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
