"""Runs that are killed or stopped at any moment: the same command then ends with the same table.

`test_order_of_writes.py` has what a power cut would lose, and `run/test_lab.py` deaths of a whole search.
"""

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.command_line import command, environment, interruptible, reproduce
from tests.support.processes import group_members, wait_until, worker_processes
from tests.support.tiny_run import FOLDERS, striped_images

STOPPED = "stopped; everything finished is kept, run the same command to continue\n"
WRITES = 24
"""A parent process opens or renames about this many files in a whole run."""


class Whole(NamedTuple):
    """A folder with the experiment, the table of a run that nothing disturbed, and its duration in seconds."""

    folder: Path
    table: bytes
    seconds: float


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = write_experiment(tmp_path_factory.mktemp("interrupted"))
    run = Run(folder, "whole")
    code, _, err = run.end()
    assert (code, err) == (0, "")
    return Whole(folder, run.table(), time.monotonic() - run.started)


def goes_on(whole: Whole, name: str) -> None:
    """The same command ends with the same table, and its store is sound."""
    again = Run(whole.folder, name)
    code, out, err = again.end()
    assert code == 0, out + err
    assert again.table() == whole.table
    reproduce(whole.folder, "store", "check", "--store", f"{name}/store.sqlite").done()


def killed(whole: Whole, name: str, victim: str, draw: random.Random) -> bool:
    """Start a run and kill a process of it; return whether one was killed before the run ended."""
    if victim == "writer":
        run = Run(whole.folder, name, kill_at_write=draw.randint(1, WRITES))
        run.end()
        return run.shot.exists()
    # A tenth of the runs draw their page, which is then most of their time.
    page = draw.random() < 0.1
    run = Run(whole.folder, name, page=page)
    hit = run.lives_until(draw.uniform(0.2, 3.0 if page else 1.0) * whole.seconds)
    if hit and victim == "worker":
        hit = run.kill_worker(draw)
    elif hit:
        run.process.kill()
    run.end()
    return hit


@pytest.mark.late
def test_a_run_that_is_killed_at_a_write_continues_to_the_same_table(tiny_run: Path, tmp_path: Path) -> None:
    """The short one of these tests: its undisturbed run is the one that all tests share."""
    whole = Whole(write_experiment(tmp_path, iterations=2), (tiny_run / "runs/tables/tiny.csv").read_bytes(), 0.0)
    assert killed(whole, "killed", "writer", random.Random(0))
    goes_on(whole, "killed")


@pytest.mark.faults
@pytest.mark.parametrize("number", range(50))
def test_a_killed_run_continues_to_the_same_table(whole: Whole, number: int) -> None:
    draw, victim = random.Random(number), ("writer", "parent", "worker")[number % 3]
    names = (f"{victim}-{number}-{attempt}" for attempt in range(20))
    goes_on(whole, next(name for name in names if killed(whole, name, victim, draw)))


@pytest.mark.faults
@pytest.mark.parametrize("number", range(20))
def test_a_stopped_run_says_so_and_continues_to_the_same_table(whole: Whole, number: int) -> None:
    name, which = f"stopped-{number}", (signal.SIGINT, signal.SIGTERM)[number % 2]
    run = Run(whole.folder, name)
    # From the first imports to the end of the run.
    if run.lives_until(random.Random(number).uniform(0.2, whole.seconds)):
        os.killpg(run.process.pid, which)
    code, out, err = run.end()
    unheard = code == -which and not err and (not out or "page: not drawn" in out)  # Python had not begun, or was done.
    assert (code, err) in ((0, ""), (128 + which, STOPPED)) or unheard, out
    goes_on(whole, name)


@pytest.mark.late
def test_a_second_run_of_an_experiment_is_refused_and_others_use_the_store(tmp_path: Path) -> None:
    write_experiment(tmp_path)
    first = Run(tmp_path, "runs", "--workers", "1")
    first.until("best fold")  # Between two trainings it writes nothing to the store.
    os.killpg(first.process.pid, signal.SIGSTOP)  # It must not end before the second has started.
    code, out, err = Run(tmp_path, "runs", "--workers", "1").end()
    os.killpg(first.process.pid, signal.SIGCONT)
    refused = "error: runs/store.sqlite: another run of this experiment is using it; wait for its end, or stop it\n"
    assert (code, err) == (2, refused)
    assert "images of" not in out
    other = Run(tmp_path, "runs", "--workers", "1", "--seed", "1")
    for run in (first, other):
        code, out, err = run.end()
        assert (code, err) == (0, "")
        assert re.search(r"8 trainings made in .*, 0 found in the store", out)


@pytest.mark.long
def test_a_killed_run_that_starts_again_at_once_goes_on(tmp_path: Path) -> None:
    write_experiment(tmp_path, iterations=60)
    first = Run(tmp_path, "runs")
    first.until("untrained: run")
    first.process.kill()
    code, _, err = Run(tmp_path, "runs").end()
    assert (code, err) == (0, "")
    assert first.end()[2] == "", "its workers end without a warning"


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
