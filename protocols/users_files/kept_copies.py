"""Copies of users' source files beside the checkpoints, so that stored models can be used after the files are gone."""

import os
from collections.abc import Iterable
from pathlib import Path

from protocols.users_files.classes import known_files, remember_files
from protocols.users_files.digest import digest_of, source_contents, source_digest
from results.spec.source_names import SourceName
from results.whole_files import write_whole

_FOLDER = "sources"


def keep_sources(artifacts: Path) -> None:
    """Copy the users' files that this process knows to `sources/HASH` in the folder of the artifacts.

    A file that has changed or is gone since its hash was taken is left out, and a copy from before stays as it is. No
    training uses such a file: `load_source` refuses it.

    Args:
        artifacts: Folder of the checkpoints.

    Raises:
        OSError: A copy cannot be written.
    """
    for digest, file in known_files().items():
        contents = _contents_of(file, digest)
        folder = artifacts / _FOLDER / digest
        for path, content in contents.items():
            target = folder / path.relative_to(os.path.commonpath([other.parent for other in contents]))
            if not target.is_file() or target.read_bytes() != content:
                write_whole(target, content)


def _contents_of(file: Path, digest: str) -> dict[Path, bytes]:
    """Return the files of a source with their content; none if they no longer have this digest."""
    try:
        contents = source_contents(file)
    except (OSError, SyntaxError, ValueError):  # ValueError: a file with null bytes.
        return {}
    return contents if digest_of(file, contents) == digest else {}


def remember_kept_sources(artifacts: Path, names: Iterable[str]) -> None:
    """Find the kept copies of files and remember them, so that their classes can be loaded.

    Args:
        artifacts: Folder of the checkpoints.
        names: Names with hashes, as specifications have them. Files without a copy are left out.
    """
    for name in names:
        parsed = SourceName.parse(name)
        if parsed is not None and parsed.digest is not None and parsed.in_file:
            for file in (artifacts / _FOLDER / parsed.digest).rglob(parsed.source):
                if source_digest(file) == parsed.digest:
                    remember_files({parsed.digest: file.absolute()})
