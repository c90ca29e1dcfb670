"""Runs that a power cut ends at a random moment; the same command then ends with the table of a whole run.

The cut is simulated: all processes are killed, and every file and every name that was not synced by then is lost.
`test_order_of_writes.py` has the same for each function that writes.
"""

import random
import time
from pathlib import Path

import pytest

from tests.support.command_line import reproduce
from tests.support.killed_runs import table
from tests.support.power_cuts import CutRun, lose_unsynced
from tests.support.tiny_run import FOLDERS, striped_images

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the open files in /proc"),
]

CUTS = 27


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A folder with the table of a run without a cut, and the duration of this run in seconds."""
    folder = tmp_path_factory.mktemp("cuts")
    striped_images(folder / "images")
    (folder / "tiny.yaml").write_text(FOLDERS.replace("iterations_per_epoch: 2", "iterations_per_epoch: 20"))
    run = CutRun(folder, "whole")
    assert run.end() == 0, (folder / "whole.txt").read_text()
    return folder, time.monotonic() - run.started


def test_a_cut_loses_what_was_not_synced(tmp_path: Path) -> None:
    """Without any sync nothing is left; so the tests below can fail."""
    (tmp_path / "run" / "artifacts").mkdir(parents=True)
    (tmp_path / "run" / "artifacts" / "checkpoint.pt").write_bytes(b"content")
    (tmp_path / "run" / "store.sqlite").write_bytes(b"content")
    lose_unsynced(tmp_path / "run", tmp_path / "no.log")
    assert [path.name for path in (tmp_path / "run").rglob("*")] == ["store.sqlite"]


@pytest.mark.parametrize("number", range(CUTS))
def test_a_run_continues_after_a_power_cut_to_the_same_table(whole: tuple[Path, float], number: int) -> None:
    folder, seconds = whole
    # The cuts are spread over the whole run: its start, its trainings and its end.
    moment = (number + random.Random(number).random()) / CUTS
    for attempt in range(20):
        name = f"cut-{number}-{attempt}"
        if CutRun(folder, name).cut((1 - attempt / 20) * (0.15 + 0.85 * moment) * seconds):
            break
    else:
        pytest.fail("no run was cut in 20 attempts")
    assert CutRun(folder, name).end() == 0, (folder / f"{name}.txt").read_text()
    assert table(folder, name) == table(folder, "whole")
    checked = reproduce(folder, "store", "check", "--store", f"{name}/store.sqlite", "--artifacts", f"{name}/artifacts")
    assert checked.code == 0, checked.out + checked.err
