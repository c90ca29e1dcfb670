"""Overlapping runs, interrupts at random moments and a server that restarts: equal tables, no training made twice."""

import os
import random
import signal
import time

import pytest

from tests.support.command_line import reproduce
from tests.support.runs_at_once import TRAININGS, assert_equal_work, interrupt, made, start_run, write_experiment

SQLITE = "runs/store.sqlite"


def test_two_runs_on_sqlite(tmp_path):
    assert_equal_work(tmp_path, SQLITE, 2)


@pytest.mark.faults
def test_four_runs_on_sqlite(tmp_path):
    assert_equal_work(tmp_path, SQLITE, 4, iterations=60)


@pytest.mark.cluster
@pytest.mark.parametrize("runs", [2, 4])
def test_runs_on_postgresql(tmp_path, postgresql_url, runs):
    assert_equal_work(tmp_path, postgresql_url, runs, iterations=60)


@pytest.mark.faults
@pytest.mark.cluster
def test_a_run_survives_a_restart_of_the_server(tmp_path, postgresql_server):
    url = postgresql_server.new_database()
    write_experiment(tmp_path, iterations=60)
    running = start_run(tmp_path, url, "tables")
    for line in running.stdout:
        if "contrastive: search" in line:
            break
    postgresql_server.stop()
    time.sleep(2)
    postgresql_server.start()
    out, err = running.communicate(timeout=300)
    assert (running.returncode, err) == (0, "")
    assert made(out) > 0
    again = reproduce(tmp_path, "run", "tiny.yaml", "--workers", "1", "--store", url, "--artifacts", "artifacts")
    assert made(again.out) == 0


@pytest.mark.cluster
def test_a_run_whose_connections_are_cut_all_the_time(tmp_path, postgresql_server):
    url = postgresql_server.new_database()
    write_experiment(tmp_path, iterations=60)
    running = start_run(tmp_path, url, "cut")
    for line in running.stdout:
        if "images of" in line:
            break
    with postgresql_server.cutting(url, 0.2):
        out, err = running.communicate(timeout=300)
    assert (running.returncode, err) == (0, "")
    assert made(out) == TRAININGS
    undisturbed = start_run(tmp_path, SQLITE, "undisturbed")
    out, err = undisturbed.communicate(timeout=300)
    assert (undisturbed.returncode, err) == (0, "")
    assert (tmp_path / "cut" / "tiny.csv").read_bytes() == (tmp_path / "undisturbed" / "tiny.csv").read_bytes()


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
    out, err = again.communicate(timeout=300)
    assert (again.returncode, err) == (0, "")
    assert "another run" not in out
