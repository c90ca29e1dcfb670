"""What a power cut would leave of a folder: the files and names that were synced, and nothing else."""

import os
import stat
from pathlib import Path

import pytest


class Disk:
    """Watches `os.fsync` and remembers what is on the disk below a folder.

    A file's content is what it had at its last sync. A folder has the names that it had at its last sync. This is the
    least that a file system keeps after a power cut.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._note(root)
        sync = os.fsync

        def noted(handle: int) -> None:
            sync(handle)
            self._note(Path(os.readlink(f"/proc/self/fd/{handle}")))

        monkeypatch.setattr(os, "fsync", noted)

    def _note(self, path: Path) -> None:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            self._names[status.st_ino] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            self._contents[status.st_ino] = path.read_bytes()

    def after_a_cut(self) -> dict[Path, bytes]:
        """The files that would be there, with their contents. A file that was never synced is empty."""
        return dict(self._files(self.root, self.root.stat().st_ino))

    def _files(self, path: Path, inode: int) -> list[tuple[Path, bytes]]:
        if inode not in self._names and not path.is_dir():
            return [(path, self._contents.get(inode, b""))]
        below = self._names.get(inode, {})
        return [file for name, number in below.items() for file in self._files(path / name, number)]

    def lost(self, *files: Path) -> list[str]:
        """Those of the files that a power cut would lose or leave incomplete."""
        kept = self.after_a_cut()
        return [str(file) for file in files if kept.get(file) != file.read_bytes()]
