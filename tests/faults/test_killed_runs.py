"""Runs that are killed at a random moment; the same command then ends with the table of a run that was not killed."""

import random
import time
from pathlib import Path

import pytest

from tests.support.command_line import reproduce
from tests.support.killed_runs import EXPERIMENT, KilledRun, table

VICTIMS = ("parent", "worker", "writer")
KILLS, SHORT = 50, 2
WRITES = 24
"""A parent process opens or renames about this many files in a whole run."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A folder with the table of a run that was not killed, and the duration of this run in seconds."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "tiny.yaml").write_text(EXPERIMENT)
    # The first run reads the images into the cache; the second one is timed.
    for name in ("reading", "whole"):
        run = KilledRun(folder, name)
        assert run.end() == 0, (folder / name / "log.txt").read_text()
    return folder, time.monotonic() - run.started


def kill(folder: Path, name: str, seconds: float, victim: str, draw: random.Random) -> bool:
    """Start a run and kill a process of it; return whether one was killed before the run ended."""
    if victim == "writer":
        run = KilledRun(folder, name, kill_at_write=draw.randint(1, WRITES))
        run.end()
        return run.shot.exists()
    # A tenth of the runs draw their page, which is then most of their time.
    page = draw.random() < 0.1
    run = KilledRun(folder, name, page=page)
    was_killed = run.sleep_until(draw.uniform(0.2, 3.0 if page else 1.0) * seconds)
    if was_killed and victim == "worker":
        was_killed = run.kill_worker(draw)
    elif was_killed:
        run.kill_parent()
    run.end()
    return was_killed


@pytest.mark.parametrize(
    "number", [*range(SHORT), *(pytest.param(n, marks=pytest.mark.faults) for n in range(SHORT, KILLS))]
)
def test_a_killed_run_continues_to_the_same_table(whole: tuple[Path, float], number: int) -> None:
    folder, seconds = whole
    draw, victim = random.Random(number), VICTIMS[number % len(VICTIMS)]
    for attempt in range(20):
        name = f"{victim}-{number}-{attempt}"
        if kill(folder, name, seconds, victim, draw):
            break
    else:
        pytest.fail("no process was killed in 20 runs")
    again = KilledRun(folder, name)
    assert again.end() == 0, (folder / name / "log.txt").read_text()
    assert table(folder, name) == table(folder, "whole")
    checked = reproduce(folder, "store", "check", "--store", f"{name}/store.sqlite")
    assert checked.code == 0, checked.out + checked.err
