"""Runs that are killed or stopped at any moment: the same command then ends with the same table.

`test_order_of_writes.py` has what a power cut would lose, and `run/test_lab.py` deaths of a whole search.
"""

import os
import random
import re
import signal
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.command_line import reproduce
from tests.support.interrupted_runs import Run, write_experiment

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
    checked = reproduce(whole.folder, "store", "check", "--store", f"{name}/store.sqlite")
    assert checked.code == 0, checked.out + checked.err


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
