"""Files are on the disk before the store says that they exist, so that a power cut loses nothing that is recorded."""

import os
import stat
from pathlib import Path

import pytest
import torch

from reproduce.run.tasks import write_tensors
from results.atomic_files import atomic_folder, write_atomically
from results.records.artifacts import weights_path
from results.store.store import Store
from tests.support.labs import reproduction, run_here
from tests.support.small_setup import COSFACE, small_setup


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


pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the open files in /proc")


def in_a_folder(path: Path) -> None:
    with atomic_folder(path.parent) as folder:
        (folder / path.name).write_text("text")


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_atomically(path, "text"),
        lambda path: write_tensors(path, {"w": torch.ones(3)}),
        in_a_folder,
    ],
    ids=["file", "checkpoint", "folder"],
)
def test_a_written_file_survives_a_power_cut(tmp_path, monkeypatch, write):
    disk, path = Disk(tmp_path, monkeypatch), tmp_path / "new" / "deeper" / "file"
    before = os.listdir("/proc/self/fd")
    write(path)
    assert len(os.listdir("/proc/self/fd")) == len(before), "no file is left open"
    assert disk.lost(path) == []
    assert list(disk.after_a_cut()) == [path]


def test_a_cut_during_a_write_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch):
    disk, path, seen = Disk(tmp_path, monkeypatch), tmp_path / "file", []
    write_atomically(path, "old")
    for name in ("fsync", "replace"):
        call = getattr(os, name)

        def watched(*arguments, call=call):
            seen.append(disk.after_a_cut()[path])
            call(*arguments)
            seen.append(disk.after_a_cut()[path])

        monkeypatch.setattr(os, name, watched)
    write_atomically(path, "new")
    assert seen[0] == b"old"
    assert seen[-1] == b"new"
    assert set(seen) == {b"old", b"new"}


def test_the_store_names_only_files_that_are_on_the_disk(tmp_path, monkeypatch):
    """The order for every kind of artifact: write, sync, rename, sync of the folder, and then the commit."""
    setup = small_setup(tmp_path / "cache")
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    disk, committed = Disk(tmp_path, monkeypatch), []
    put_fold, put_run = store.put_fold, store.put_run

    def folds_files(result):
        weights = weights_path(store.artifacts, result.spec)
        committed.append([weights.name] if weights.exists() else [])
        assert disk.lost(weights) == []
        put_fold(result)

    def runs_files(record):
        files = [weights_path(store.artifacts, spec) for spec in record.specs]
        committed.append([file.name for file in files])
        assert not any(map(disk.lost, files))
        put_run(record)

    monkeypatch.setattr(store, "put_fold", folds_files)
    monkeypatch.setattr(store, "put_run", runs_files)
    run_here(setup, store, {"cosface": reproduction(setup, COSFACE)})
    assert [len(files) for files in committed] == [1, 1, 2]
