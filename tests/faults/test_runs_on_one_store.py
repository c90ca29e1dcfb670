"""Runs beside each other on one store, and interrupts at random moments."""

import os
import random
import signal

import pytest

from tests.support.command_line import reproduce
from tests.support.runs_at_once import TRAININGS, interrupt, made, start_run, write_experiment

SQLITE = "runs/store.sqlite"


def begun(folder, name, *more):
    """A run that has begun to train."""
    process = start_run(folder, SQLITE, name, *more)
    for line in process.stdout:
        if "images of" in line:
            return process
    raise AssertionError(process.communicate())


def test_a_second_run_of_an_experiment_is_refused_and_others_use_the_store(tmp_path):
    write_experiment(tmp_path, iterations=60)
    first = begun(tmp_path, "first")
    os.killpg(first.pid, signal.SIGSTOP)  # It must not end before the second has started.
    out, err = start_run(tmp_path, SQLITE, "second").communicate(timeout=300)
    os.killpg(first.pid, signal.SIGCONT)
    assert err == f"error: {SQLITE}: another run of this experiment is using it; wait for its end, or stop it\n"
    assert "images of" not in out
    other = start_run(tmp_path, SQLITE, "other", "--seed", "1")
    for process in (first, other):
        out, err = process.communicate(timeout=300)
        assert (process.returncode, err) == (0, "")
        assert made(out) == TRAININGS
    again = start_run(tmp_path, SQLITE, "again")
    assert made(again.communicate(timeout=300)[0]) == 0


def assert_interrupts_lose_nothing(folder, count):
    write_experiment(folder, iterations=60)
    chance = random.Random(15)
    stopped = 0
    for number in range(count):
        # From the first imports to the end of the run.
        stopped += interrupt(folder, SQLITE, chance.uniform(0.2, 12), (signal.SIGINT, signal.SIGTERM)[number % 2])
    assert stopped > 0
    answer = reproduce(folder, "run", "tiny.yaml", "--workers", "2", "--artifacts", "artifacts", "--cache", "cache")
    assert (answer.code, answer.err) == (0, "")


@pytest.mark.faults
def test_three_interrupts(tmp_path):
    assert_interrupts_lose_nothing(tmp_path, 3)


@pytest.mark.faults
def test_twenty_interrupts(tmp_path):
    assert_interrupts_lose_nothing(tmp_path, 20)


@pytest.mark.long
def test_a_killed_run_that_starts_again_at_once_goes_on(tmp_path):
    write_experiment(tmp_path, iterations=60)
    killed = start_run(tmp_path, SQLITE, "tables", "--workers", "2")
    for line in killed.stdout:
        if "untrained: run" in line:
            break
    os.kill(killed.pid, signal.SIGKILL)
    again = start_run(tmp_path, SQLITE, "tables")
    assert killed.communicate(timeout=60)[1] == "", "its workers end without a warning"
    _, err = again.communicate(timeout=300)
    assert (again.returncode, err) == (0, "")
