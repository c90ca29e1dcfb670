"""Runs in rounds: methods that are clearly behind get no more runs, and added runs are disclosed."""

import pytest
import yaml

from reproduce.config.experiment_file import load_experiments
from reproduce.errors import InputError
from reproduce.storage import open_store, storage_paths
from tests.support.command_line import TINY, ask

SETTINGS = {
    **yaml.safe_load(TINY),
    "methods": ["contrastive", "normalized_softmax"],
    "search": {"trials": 0},
    "reproductions": {"first": 3, "at most": 5},
    "folds": 1,
}


@pytest.fixture
def say(capsys, monkeypatch, tmp_path, same_threads_afterwards):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "looks.yaml").write_text(yaml.safe_dump(SETTINGS))
    return lambda *arguments: ask(*arguments, capsys=capsys, monkeypatch=monkeypatch)


def stored():
    store = open_store(storage_paths("runs/store.sqlite", None, None, None))
    fingerprint = store.latest_experiments()["looks"]
    return store.experiment(fingerprint), store.experiment_runs(fingerprint)


def runs_of(records, method):
    return sum(record.method == method for record in records)


def all_behind(monkeypatch, level=0.9999):
    """Every method with a p value below `level` is stopped, so that tiny trainings show what happens."""
    monkeypatch.setattr("reproduce.execution.run_experiment.boundary", lambda *_: level)


def test_a_method_behind_gets_no_more_runs_and_the_tables_say_so(say, monkeypatch):
    all_behind(monkeypatch)
    answer = say("run", "looks.yaml", "--workers", "1")
    assert answer.code == 0, answer.err
    summary, records = stored()
    (stop,) = summary.stopped
    assert stop.runs == 3 == runs_of(records, stop.method) == summary.runs[stop.method]
    assert runs_of(records, stop.leader) == 5
    assert "8 trainings made" in answer.out
    table = " ".join(say("table", "looks").out.split())
    assert "‡" in table
    assert "stopped after 3 runs" in table
    assert "Partial" not in table
    assert "at most 5 % in all" in table
    assert "Fewer than two" in say("table", "looks", "--what", "differences").out


def test_the_same_decisions_are_made_again_from_the_store(say, monkeypatch):
    all_behind(monkeypatch)
    assert say("run", "looks.yaml", "--workers", "1").code == 0
    before, _ = stored()
    again = say("run", "looks.yaml", "--workers", "1")
    assert "0 trainings made" in again.out, again.err
    assert stored()[0] == before


def test_nobody_is_stopped_within_the_boundary(say, monkeypatch):
    all_behind(monkeypatch, level=0.0)
    assert "10 trainings made" in say("run", "looks.yaml", "--workers", "1").out
    assert stored()[0].stopped == ()


def test_runs_that_are_added_to_known_results_are_disclosed(say, tmp_path):
    (tmp_path / "looks.yaml").write_text(yaml.safe_dump({**SETTINGS, "reproductions": 2}))
    assert say("run", "looks.yaml", "--workers", "1").code == 0
    assert stored()[0].seen_after == ()
    raised = say("run", "looks.yaml", "--workers", "1", "--reproductions", "3")
    assert "2 trainings made" in raised.out
    assert stored()[0].seen_after == (2,)
    note = "The number of runs was raised to 3 when the results of 2 runs were known."
    assert note in " ".join(say("table", "looks").out.split())
    fewer = say("run", "looks.yaml", "--workers", "1", "--reproductions", "2")
    assert fewer.code == 0
    assert stored()[0].seen_after == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reproductions": {"first": 3}}, "reproductions takes a number, or `first` and `at most`"),
        ({"reproductions": {"first": 3, "at most": 3}}, "needs fewer first reproductions than reproductions at most"),
        ({"reproductions": {"first": 2, "at most": 9}}, "key 'first_reproductions': input should be greater than"),
        ({"search": {"trials": 2, "searches": 2}}, "cannot be stopped early if the search is repeated"),
    ],
)
def test_wrong_rounds_are_refused_in_one_line(tmp_path, changes, message):
    path = tmp_path / "looks.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, **changes}))
    with pytest.raises(InputError) as error:
        load_experiments(str(path), {})
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300
