"""Damaged rows of searches are named in one line, and a run makes the search again without a training."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.command_line import ask

RUN = ("run", "tiny.yaml", "--data", "images", "--workers", "1", "--device", "cpu")

DAMAGES = {
    "a distribution that is no JSON": (
        "UPDATE trial_params SET distribution_json = '{\"name\"' WHERE trial_id = 2",
        "trial 1 cannot be read",
    ),
    "a system attribute that is no JSON": (
        "UPDATE trial_system_attributes SET value_json = '' WHERE trial_id = 1",
        "trial 0 cannot be read",
    ),
    "a user attribute that is no text": (
        "UPDATE trial_user_attributes SET value_json = CAST(x'ff22' AS TEXT) WHERE trial_id = 2",
        "trial 1 cannot be read",
    ),
    "a state that does not exist": ("UPDATE trials SET state = 'DONE' WHERE trial_id = 2", "trial 1 cannot be read"),
    "a finished trial that is said to run": (
        "UPDATE trials SET state = 'RUNNING' WHERE trial_id = 1",
        "trial 0 has a score, but the state RUNNING",
    ),
    "a state that no search writes": (
        "UPDATE trials SET state = 'PRUNED' WHERE trial_id = 1",
        "trial 0 has the state PRUNED",
    ),
    "a missing hyperparameter": (
        "DELETE FROM trial_params WHERE param_id = 3",
        "trial 1 lacks a hyperparameter",
    ),
    "a missing score": ("DELETE FROM trial_values WHERE trial_id = 1", "trial 0 lacks its score"),
    "another score": (
        "UPDATE trial_values SET value = 0.9 WHERE trial_id = 1",
        "trial 0 has a score that is not the mean over its folds",
    ),
    "missing scores of folds": (
        "DELETE FROM trial_user_attributes WHERE key = 'fold_values' AND trial_id = 1",
        "trial 0 lacks the scores of its folds",
    ),
    "missing fingerprints": (
        "DELETE FROM trial_user_attributes WHERE key = 'fold_fingerprints' AND trial_id = 1",
        "trial 0 lacks the fingerprints of its trainings",
    ),
    "a missing trial": ("DELETE FROM trials WHERE trial_id = 1", "trial 0 is missing"),
    "a missing direction": ("DELETE FROM study_directions", "direction is missing"),
    "an identity that is no JSON": ("UPDATE study_user_attributes SET value_json = '{'", "attributes cannot be read"),
    "another identity": ("UPDATE study_user_attributes SET value_json = '{}'", "does not give the fingerprint"),
    "a missing identity": ("DELETE FROM study_user_attributes", "attribute `identity` is missing"),
}
WITH_A_RUN = ["a distribution that is no JSON", "a user attribute that is no text", "a missing score"]


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


def spoil(runs: Path, statement: str) -> None:
    with closing(sqlite3.connect(runs / "store.sqlite")) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_search_is_found_and_named_in_one_line(runs, say, name):
    statement, reason = DAMAGES[name]
    spoil(runs, statement)
    checked = say("store", "check", "--records-only")
    assert checked.code == 1
    assert "damaged: study folder/contrastive " in checked.out
    assert reason in checked.out
    refused = say("plan", "tiny.yaml", "--data", "images")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert reason in refused.err
    assert "`reproduce run` sets it aside" in refused.err


@pytest.mark.parametrize("name", WITH_A_RUN)
def test_a_run_makes_a_damaged_search_again_without_a_training(runs, say, name):
    table = (runs / "tables" / "tiny.csv").read_bytes()
    trials = trials_of(runs)
    spoil(runs, DAMAGES[name][0])
    again = say(*RUN)
    assert (again.code, again.err) == (0, "")
    (file,) = (runs / "artifacts" / "searches").iterdir()
    assert f"its rows are kept in runs/artifacts/searches/{file.name}" in again.out
    assert "0 trainings made" in again.out
    assert trials_of(runs) == trials
    assert (runs / "tables" / "tiny.csv").read_bytes() == table
    kept = json.loads(file.read_text())
    assert [len(kept[name]) for name in ("studies", "study_user_attributes")] == [1, 1]
    assert say("store", "check").code == 0


def test_rows_of_a_missing_study_are_set_aside_before_another_study_gets_them(runs, say):
    trials = trials_of(runs)
    spoil(runs, "DELETE FROM studies")
    assert "row(s) belong to no study or trial" in say("store", "check", "--records-only").out
    refused = say("plan", "tiny.yaml", "--data", "images")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    again = say(*RUN)
    assert (again.code, again.err) == (0, "")
    assert "row(s) of searches belonged to no study" in again.out
    assert "0 trainings made" in again.out
    assert trials_of(runs) == trials


@pytest.mark.parametrize("command", [("status",), ("table", "tiny"), ("report", "tiny")])
def test_what_is_drawn_from_records_needs_no_search_or_says_one_line(runs, say, command):
    spoil(runs, DAMAGES["a distribution that is no JSON"][0])
    answer = say(*command)
    expected = (2, 1) if command[0] == "report" else (0, 0)
    assert (answer.code, answer.err.count("\n")) == expected


def trials_of(runs: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(runs / "store.sqlite")) as connection:
        query = (
            "SELECT number, state, param_name, param_value, value, value_json FROM trials "
            "JOIN trial_params USING (trial_id) JOIN trial_values USING (trial_id) "
            "JOIN trial_user_attributes USING (trial_id) ORDER BY 1, 3, 6"
        )
        return connection.execute(query).fetchall()
