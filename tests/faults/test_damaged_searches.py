"""Damaged rows of searches are named in one line, and the search can be made again without a training."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.command_line import ask

RUN = ("run", "tiny.yaml", "--data", "images", "--workers", "1", "--device", "cpu")
DAMAGES = {
    "another score": "UPDATE trials SET content = json_set(content, '$.score', 0.9) WHERE number = 0",
    "a missing trial": "DELETE FROM trials WHERE number = 0",
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
        return connection.execute("SELECT * FROM trials ORDER BY study, number").fetchall()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_search_is_named_and_made_again_without_a_training(runs, say, damage):
    table, trials = (runs / "tables" / "tiny.csv").read_bytes(), trials_of(runs)
    change(runs, DAMAGES[damage])
    for command in (("report", "tiny"), RUN):
        refused = say(*command)
        assert (refused.code, refused.err.count("\n")) == (2, 1), command
        assert "is damaged" in refused.err
        assert "`reproduce store check`" in refused.err
    change(runs, "DELETE FROM trials")
    again = say(*RUN)
    assert (again.code, again.err) == (0, "")
    assert "0 trainings made" in again.out
    assert trials_of(runs) == trials
    assert (runs / "tables" / "tiny.csv").read_bytes() == table
