"""Copies of users' files beside the checkpoints, so that stored models can be used after the files are gone."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from protocols.users_files.loaded_files import LoadedSource, sha256_of
from protocols.users_files.sources import known_sources, remember_sources
from results.spec.source_names import SourceName
from results.whole_files import write_whole

_KEPT = "sources"
"""Folder of the copies below that of the checkpoints."""


def keep_sources(artifacts: Path) -> None:
    """Copy the users' files that this process knows to `sources/HASH` in the folder of the artifacts.

    A source that has changed or is gone since its hash was taken is left out, and a copy from before stays as it is. No
    training uses such a source: `load_source` refuses it.
    """
    for digest, source in known_sources().items():
        try:
            contents = {name: path.read_bytes() for name, (path, _) in source.files.items()}
        except OSError:
            continue
        found = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        if not source.in_file or any(found[name] != was for name, (_, was) in source.files.items()):
            continue
        for name, content in contents.items():
            target = artifacts / _KEPT / digest / name
            if not target.is_file() or target.read_bytes() != content:
                write_whole(target, content)


def kept_source(folder: Path, name: str) -> LoadedSource:
    """Return the copy of a source in a folder of its own; `name` is that of its file."""
    files = {path.relative_to(folder).as_posix(): path.absolute() for path in folder.rglob("*") if path.is_file()}
    return LoadedSource((folder / name).absolute(), {key: (path, sha256_of(path) or "") for key, path in files.items()})


def remember_kept_sources(artifacts: Path, names: Iterable[str]) -> None:
    """Remember the kept copies of the files that names with hashes mean. Sources without a copy are left out."""
    for name in names:
        parsed = SourceName.parse(name)
        if parsed is not None and parsed.digest is not None and parsed.in_file:
            source = kept_source(artifacts / _KEPT / parsed.digest, parsed.source)
            if source.files and source.digest == parsed.digest:
                remember_sources({parsed.digest: source})
