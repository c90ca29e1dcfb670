"""Runs that a power cut ends: all processes are killed, and what was not synced to the disk is lost."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.support.command_line import environment
from tests.support.killed_runs import run_arguments
from tests.support.processes import group_members

# Every Python process of the run, workers too, imports this module when it starts. A line of the log is a file with its
# size at a sync, or a folder with its names; it is written at once, so that lines of several processes do not mix.
_NOTE_SYNCS = """
import json, os
_folder, _sync, _sync_all = os.environ["SYNCS_OF"], os.fsync, os.sync
_log = os.open(os.environ["SYNC_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def _note(path):
    status, names = os.stat(path), None
    if os.path.isdir(path):
        names = {entry.name: entry.inode() for entry in os.scandir(path)}
    os.write(_log, (json.dumps([status.st_ino, status.st_size, status.st_mtime_ns, names]) + "\\n").encode())
def fsync(handle):
    number = handle if isinstance(handle, int) else handle.fileno()
    _sync(number)
    path = os.readlink(f"/proc/self/fd/{number}")
    if path.startswith(_folder):
        _note(path)
def sync():
    _sync_all()
    for base, _, names in os.walk(_folder):
        for path in (base, *(os.path.join(base, name) for name in names)):
            _note(path)
os.fsync, os.sync = fsync, sync
"""

_DATABASE = "store.sqlite"
"""SQLite syncs its own files, in C. They stay as the killed processes left them."""


class CutRun:
    """A run of the tiny experiment with store, artifacts and cache in a folder of its own.

    Args:
        folder: The folder with `tiny.yaml` and its images.
        name: Folder of the run, below `folder`.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.base, self.log = folder / name, folder / f"{name}.syncs"
        self.base.mkdir(exist_ok=True)
        hooks = folder / "hooks"
        hooks.mkdir(exist_ok=True)
        (hooks / "sitecustomize.py").write_text(_NOTE_SYNCS)
        variables = environment()
        variables |= {
            "PYTHONPATH": os.pathsep.join([str(hooks), variables["PYTHONPATH"]]),
            "SYNCS_OF": str(self.base),
            "SYNC_LOG": str(self.log),
        }
        arguments = [*run_arguments(name, page=False), "--data", "images", "--cache", f"{name}/cache"]
        self.started = time.monotonic()
        with (folder / f"{name}.txt").open("a") as printed:
            self.process = subprocess.Popen(
                arguments, cwd=folder, env=variables, stdout=printed, stderr=printed, start_new_session=True
            )

    def end(self) -> int:
        """Wait for the run, and return its exit code."""
        return self.process.wait(300)

    def cut(self, seconds: float) -> bool:
        """Cut the power when the run has this age; return whether it still ran then."""
        while self.process.poll() is None and time.monotonic() < self.started + seconds:
            time.sleep(0.02)
        running = self.process.poll() is None
        if running:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        while group_members(self.process.pid):
            time.sleep(0.05)
        if running:
            lose_unsynced(self.base, self.log)
        return running


def lose_unsynced(base: Path, log: Path) -> None:
    """Remove the names that no sync of their folder saw, and empty the files whose content was not synced."""
    contents: set[tuple[int, int, int]] = set()
    names: dict[int, dict[str, int]] = {}
    lines = log.read_text().splitlines() if log.exists() else []
    for inode, size, changed, entries in map(json.loads, lines):
        if entries is None:
            contents.add((inode, size, changed))
        else:
            names[inode] = entries
    for path in sorted(base.rglob("*"), key=lambda path: len(path.parts)):
        if path.name.startswith(_DATABASE) or not os.path.lexists(path):
            continue
        status = path.lstat()
        if names.get(path.parent.stat().st_ino, {}).get(path.name) != status.st_ino:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        elif path.is_file() and (status.st_ino, status.st_size, status.st_mtime_ns) not in contents:
            path.write_bytes(b"")
