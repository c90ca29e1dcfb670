"""Compares the code of this process with that of a process on another machine."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from results.provenance import mixed_versions, provenance
from results.records import Provenance

_ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = ("losses", "results", "protocols", "reproduce/execution")
"""Folders with the code that runs on other machines."""


@dataclass(frozen=True)
class CodeVersion:
    """The code that a process runs.

    Attributes:
        sources: Hash of the suite's files that train and test.
        origin: Versions of the packages, and the commit.
    """

    sources: str
    origin: Provenance


def code_version() -> CodeVersion:
    """Return the version of the code in this process's checkout and environment."""
    digest = hashlib.sha256()
    for folder in _FOLDERS:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return CodeVersion(digest.hexdigest(), provenance("cpu", 1))


def difference(here: CodeVersion, there: CodeVersion) -> str:
    """Describe what could make the numbers of two processes differ.

    Args:
        here: The code of the process that starts the run.
        there: The code of a process on another machine.

    Returns:
        A phrase such as "torch 2.6.0 there, 2.5.1 here"; empty if the code is the same.
    """
    packages = mixed_versions((here.origin, there.origin))
    phrases = [f"{name} {there.origin.versions[name]} there, {here.origin.versions[name]} here" for name in packages]
    if here.sources != there.sources:
        phrases.append("its files of the suite are not those of this run")
    return "; ".join(phrases)
