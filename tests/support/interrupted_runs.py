"""Runs of a tiny experiment as processes of their own, which are killed or interrupted."""

import os
import random
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
    """

    def __init__(self, folder: Path, name: str, *more: str, page: bool = False, kill_at_write: int = 0) -> None:
        self.base, self.shot = folder / name, folder / f"{name}.shot"
        self.base.mkdir(exist_ok=True)
        variables = environment() | {
            "KILL_AT_WRITE": str(kill_at_write),
            "KILL_ONCE": str(self.shot),
            "KILL_IN": str(self.base),
        }
        if kill_at_write:
            hooks = folder / f"{name}.hooks"
            hooks.mkdir(exist_ok=True)
            (hooks / "sitecustomize.py").write_text(_KILL_AT_A_WRITE)
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

    def end(self) -> tuple[int, str, str]:
        """Wait for the run and its workers; return its exit code and what it printed."""
        out, err = self.process.communicate(timeout=300)
        wait_until(lambda: not group_members(self.process.pid))
        return self.process.returncode, out, err

    def table(self) -> bytes:
        """Return the table of the finished run."""
        return (self.base / "tables" / "tiny.csv").read_bytes()
