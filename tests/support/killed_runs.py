"""Runs of a tiny experiment that are killed: the parent, a worker, or the process that is about to write a file."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from tests.support.command_line import TINY, command, environment
from tests.support.processes import group_members, worker_processes

# Long enough to be hit in the middle: eight trainings and two test evaluations.
EXPERIMENT = TINY.replace("iterations_per_epoch: 5", "iterations_per_epoch: 20")

# Every Python process, workers too, imports this module when it starts.
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


class KilledRun:
    """A run of the tiny experiment in a folder, with a store and artifacts of its own.

    Args:
        folder: The folder with `tiny.yaml` and the cache of images.
        name: Folder of the run's store, below `folder`.
        page: Whether the run ends with its page.
        kill_at_write: A process of the run is killed at this file of its own that it opens for writing or renames,
            once in the whole run. 0 kills nothing.
    """

    def __init__(self, folder: Path, name: str, *, page: bool = False, kill_at_write: int = 0) -> None:
        self.base, self.shot = folder / name, folder / name / "shot"
        self.base.mkdir(exist_ok=True)
        variables = environment()
        if kill_at_write:
            hooks = self.base / "hooks"
            hooks.mkdir()
            (hooks / "sitecustomize.py").write_text(_KILL_AT_A_WRITE)
            variables |= {
                "PYTHONPATH": os.pathsep.join([str(hooks), variables["PYTHONPATH"]]),
                "KILL_AT_WRITE": str(kill_at_write),
                "KILL_ONCE": str(self.shot),
                "KILL_IN": str(self.base),
            }
        self.started = time.monotonic()
        with (self.base / "log.txt").open("a") as log:
            self.process = subprocess.Popen(
                run_arguments(name, page=page),
                cwd=folder,
                env=variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def sleep_until(self, seconds: float) -> bool:
        """Wait until the run is this old; return whether it still runs then."""
        while self.process.poll() is None:
            left = self.started + seconds - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left, 0.05))
        return False

    def kill_parent(self) -> None:
        """Kill the process that was started, as the kernel does when memory runs out."""
        self.process.kill()

    def kill_worker(self, draw: random.Random) -> bool:
        """Kill one of the worker processes; return whether there was one."""
        workers = worker_processes(self.process.pid)
        if workers:
            os.kill(draw.choice(workers), signal.SIGKILL)
        return bool(workers)

    def end(self) -> int:
        """Wait for the run and its workers, and return the exit code."""
        code = self.process.wait(300)
        deadline = time.monotonic() + 60
        while group_members(self.process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert group_members(self.process.pid) == [], "a worker outlives its run"
        return code


def run_arguments(name: str, *, page: bool) -> list[str]:
    """Return the command that runs the experiment with the store in folder `name`."""
    store = ("--store", f"{name}/store.sqlite", "--artifacts", f"{name}/artifacts", "--tables", f"{name}/tables")
    options = ("--workers", "2", "--device", "cpu", "--cache", "cache")
    return command("run", "tiny.yaml", *options, *store, page=page)


def table(folder: Path, name: str) -> bytes:
    """Return the finished table of the run with the store in folder `name`."""
    return (folder / name / "tables" / "tiny.csv").read_bytes()
