"""A check of archives that this suite wrote: checkpoints (.pt) and arrays (.npz) are zip files with checksums."""

import zipfile
import zlib
from pathlib import Path


def is_sound(path: Path) -> bool:
    """Return whether a file is a complete zip archive whose members have the contents that their checksums say."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(archive.namelist()) and archive.testzip() is None
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError):
        return False
