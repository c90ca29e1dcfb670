"""Damaged rows of searches are named in one line, and the search can be made again without a training."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.command_line import ask

RUN = ("run", "tiny.yaml", "--data", "images", "--workers", "1", "--device", "cpu")

# Statement, and whether a run can see the damage. What agrees with itself is only seen beside the trainings' records.
DAMAGES = {
    "a trial that is no JSON": ("UPDATE search_trials SET trial = '{' WHERE number = 1", True),
    "a state that does not exist": (
        """UPDATE search_trials SET trial = replace(trial, '"complete"', '"done"') WHERE number = 1""",
        True,
    ),
    "a finished trial that is said to run": (
        """UPDATE search_trials SET trial = replace(trial, '"complete"', '"running"') WHERE number = 0""",
        True,
    ),
    "another score": ("UPDATE search_trials SET trial = json_set(trial, '$.score', 0.9) WHERE number = 0", True),
    "missing scores of folds": ("UPDATE search_trials SET trial = json_set(trial, '$.fold_scores', json('[]'))", True),
    "a missing hyperparameter": (
        "UPDATE search_trials SET trial = json_remove(trial, '$.setting.\"loss.pos_margin\"') WHERE number = 1",
        False,
    ),
    "a missing trial": ("DELETE FROM search_trials WHERE number = 0", True),
    "a column that differs": ("UPDATE search_trials SET score = 0.9 WHERE number = 0", False),
    "an identity that is no JSON": ("UPDATE searches SET identity = '{'", False),
    "another identity": ("UPDATE searches SET identity = json_set(identity, '$.seed', 7)", False),
    "a missing study": ("DELETE FROM searches", False),
    "a missing training": (
        "DELETE FROM fold_results WHERE fingerprint IN "
        "(SELECT json_extract(trial, '$.trainings[0]') FROM search_trials)",
        False,
    ),
}


@pytest.fixture
def runs(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a finished run, with its images, in the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_run / "runs", tmp_path / "runs")
    (tmp_path / "images").symlink_to(tiny_run / "images")
    shutil.copyfile(tiny_run / "tiny.yaml", tmp_path / "tiny.yaml")
    return tmp_path / "runs"


@pytest.fixture
def say(capsys, monkeypatch):
    return lambda *arguments: ask(*arguments, capsys=capsys, monkeypatch=monkeypatch)


def change(runs: Path, statement: str) -> None:
    with closing(sqlite3.connect(runs / "store.sqlite")) as connection, connection:
        connection.execute(statement)


def trials_of(runs: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(runs / "store.sqlite")) as connection:
        return connection.execute("SELECT * FROM search_trials ORDER BY study, number").fetchall()


def test_damaged_searches_are_found_and_named_in_one_line(runs, say):
    whole = (runs / "store.sqlite").read_bytes()
    for name, (statement, seen_by_a_run) in DAMAGES.items():
        (runs / "store.sqlite").write_bytes(whole)
        change(runs, statement)
        checked = say("store", "check", "--records-only")
        assert checked.code == 1, name
        assert re.search(r"^(damaged|missing): (trial|study|training) ", checked.out, re.MULTILINE), name
        if seen_by_a_run:
            for command in (("plan", "tiny.yaml", "--data", "images"), ("report", "tiny"), RUN):
                refused = say(*command)
                assert (refused.code, refused.err.count("\n")) == (2, 1), (name, command)
                assert "is damaged (" in refused.err


def test_the_remedy_of_the_message_makes_the_search_again_without_a_training(runs, say):
    table, trials = (runs / "tables" / "tiny.csv").read_bytes(), trials_of(runs)
    change(runs, DAMAGES["another score"][0])
    (remedy,) = re.findall(r"DELETE FROM search_trials WHERE study = '\w+'", say(*RUN).err)
    change(runs, remedy)
    again = say(*RUN)
    assert (again.code, again.err) == (0, "")
    assert "0 trainings made" in again.out
    assert trials_of(runs) == trials
    assert (runs / "tables" / "tiny.csv").read_bytes() == table
    assert say("store", "check").code == 0
