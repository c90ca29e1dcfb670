"""Runs of a tiny experiment as processes of their own, which are killed, interrupted, or lose their power."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.support.command_line import command, environment, interruptible
from tests.support.processes import group_members, wait_until, worker_processes
from tests.support.tiny_run import FOLDERS, striped_images

# Every Python process, workers too, imports such a module when it starts.
_KILL_AT_A_WRITE = """
import os, signal, sys
_left = int(os.environ["KILL_AT_WRITE"])
_once, _folder = os.environ["KILL_ONCE"], os.environ["KILL_IN"]
def _hook(event, arguments):
    global _left
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if not (writes or event == "os.rename") or not os.path.abspath(str(arguments[0])).startswith(_folder):
        return
    _left -= 1
    if _left == 0:
        try:
            os.close(os.open(_once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(_hook)
"""

# A line of the log is a file with its size at a sync, or a folder with its names; it is written at once, so that lines
# of several processes do not mix.
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


def write_experiment(folder: Path, iterations: int = 20) -> Path:
    """Write images and an experiment of eight trainings and two tests, long enough to be hit in the middle."""
    striped_images(folder / "images")
    text = FOLDERS.replace("iterations_per_epoch: 2", f"iterations_per_epoch: {iterations}")
    (folder / "tiny.yaml").write_text(text)
    return folder


class Run:
    """A run of the experiment in a folder, with everything that it writes in a folder below.

    Args:
        folder: The folder with `tiny.yaml` and its images.
        name: The run's own folder.
        more: Further options of the command.
        page: Whether the run ends with its page.
        kill_at_write: A process of the run is killed at this file of its own that it opens for writing or renames,
            once in the whole run. 0 kills nothing.
        note_syncs: Whether the run notes what it syncs, for `cut`.
    """

    def __init__(
        self, folder: Path, name: str, *more: str, page: bool = False, kill_at_write: int = 0, note_syncs: bool = False
    ) -> None:
        self.base, self.shot, self.syncs = folder / name, folder / f"{name}.shot", folder / f"{name}.syncs"
        self.base.mkdir(exist_ok=True)
        variables = environment() | {
            "KILL_AT_WRITE": str(kill_at_write),
            "KILL_ONCE": str(self.shot),
            "KILL_IN": str(self.base),
            "SYNCS_OF": str(self.base),
            "SYNC_LOG": str(self.syncs),
        }
        hook = _KILL_AT_A_WRITE if kill_at_write else _NOTE_SYNCS if note_syncs else ""
        if hook:
            hooks = folder / f"{name}.hooks"
            hooks.mkdir(exist_ok=True)
            (hooks / "sitecustomize.py").write_text(hook)
            variables["PYTHONPATH"] = os.pathsep.join([str(hooks), variables["PYTHONPATH"]])
        options = ("--data", "images", "--workers", "2", "--device", "cpu", "--store", f"{name}/store.sqlite")
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            interruptible(command("run", "tiny.yaml", *options, *more, page=page)),
            cwd=folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def until(self, text: str) -> None:
        """Read what is printed up to a line with this text."""
        assert any(text in line for line in self.process.stdout or ()), "the run has ended"

    def lives_until(self, seconds: float) -> bool:
        """Wait until the run is this old; return whether it still runs then."""
        try:
            self.process.wait(max(0.0, self.started + seconds - time.monotonic()))
        except subprocess.TimeoutExpired:
            return True
        return False

    def kill_worker(self, draw: random.Random) -> bool:
        """Kill one of the worker processes; return whether there was one."""
        workers = worker_processes(self.process.pid)
        if workers:
            os.kill(draw.choice(workers), signal.SIGKILL)
        return bool(workers)

    def cut_power(self) -> None:
        """Kill all processes of the run, and lose what was not synced."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.end()
        lose_unsynced(self.base, self.syncs)

    def end(self) -> tuple[int, str, str]:
        """Wait for the run and its workers; return its exit code and what it printed."""
        out, err = self.process.communicate(timeout=300)
        wait_until(lambda: not group_members(self.process.pid))
        return self.process.returncode, out, err

    def table(self) -> bytes:
        """Return the table of the finished run."""
        return (self.base / "tables" / "tiny.csv").read_bytes()


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
