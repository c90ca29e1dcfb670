"""Runs of one small experiment as processes of their own: several at once, interrupted, on any store."""

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.support.command_line import TINY, command, in_background

TRAININGS = 2 + 2 * (2 + 1)
"""Untrained: one run of two folds; contrastive: two trials and one reproduction of two folds."""

STOPPED = "stopped; everything finished is kept, run the same command to continue\n"


def write_experiment(folder: Path, iterations: int = 5) -> None:
    text = TINY.replace("iterations_per_epoch: 5", f"iterations_per_epoch: {iterations}")
    (folder / "tiny.yaml").write_text(text)


def start_run(folder: Path, store: str, name: str, *more: str) -> "subprocess.Popen[str]":
    """Start a run in the background, with a folder of tables of its own."""
    options = ("--artifacts", "artifacts", "--cache", "cache", "--tables", name, "--store", store, *more)
    return in_background(folder, command("run", "tiny.yaml", "--workers", "1", *options))


def made(out: str) -> int:
    """Return the number of trainings made, from the last lines of a run."""
    counts = re.search(r"(\d+) trainings made in .*, (\d+) found in the store", out)
    assert counts is not None, out
    assert int(counts[1]) + int(counts[2]) == TRAININGS, out
    return int(counts[1])


def interrupt(folder: Path, store: str, seconds: float, number: signal.Signals = signal.SIGINT) -> bool:
    """Interrupt a run after some seconds, and check how it ends; return False if it was done before."""
    process = start_run(folder, store, "tables", "--workers", "2")
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number)
    out, err = process.communicate(timeout=120)
    if process.returncode == 0:
        assert "trainings made in" in out
        return False
    if process.returncode == -number and not out + err:
        return False  # It came before Python had read the first module.
    assert (process.returncode, err) == (128 + number, STOPPED), (process.returncode, err, out)
    return True
