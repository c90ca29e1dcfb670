"""The names of the files in the folder of artifacts."""

import re
from pathlib import Path

SOURCES = "sources"
"""Folder of the copies of users' source files, below the folder of artifacts."""

_OF_A_TRAINING = re.compile(r"([0-9a-f]{32})\.(pt|last\.pt|proxies\.pt|recording\.npz)")
_OF_A_RUN = re.compile(r"([0-9a-f]{32})\.npz")
_DIGEST = re.compile(r"[0-9a-f]{16}")


def owner_of(name: Path) -> str | None:
    """Return what a file belongs to.

    Args:
        name: Path of the file below the folder of artifacts.

    Returns:
        The fingerprint of a training or of a test evaluation, or the hash of a user's source; None if the suite writes
        no file of this name.
    """
    folder, *below = name.parts
    if folder == SOURCES and len(below) > 1 and _DIGEST.fullmatch(below[0]) and ".." not in below:
        return below[0]
    if len(below) != 1:
        return None
    match = (_OF_A_RUN if folder == "exhibits" else _OF_A_TRAINING).fullmatch(below[0])
    return match[1] if match and folder in ("exhibits", below[0][:2]) else None


def is_checkpoint(name: Path) -> bool:
    """Return whether a file holds weights, proxies or recordings of a training, and not data for a page."""
    return name.parts[0] not in (SOURCES, "exhibits")
