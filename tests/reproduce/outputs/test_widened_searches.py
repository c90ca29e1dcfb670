"""Searches that got more trials where ends of ranges were probed: all of their trials count."""

from dataclasses import replace

import pytest

from reports.board.boards import Source
from reproduce.commands.plan import show_plan
from reproduce.outputs.find_runs import best_search
from reproduce.outputs.page import histories
from results.records.trials import Trial
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.sample_records import changed_plan, put_experiment, some_plan, some_run
from tests.support.surfaces import open_surface, surface_file

SCORES = {"first": (0.3, 0.4, 0.41), "second": (0.2, 0.3, 0.5)}
"""Of the two trials in the file the first search has the best one, of all three the second."""


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store.sqlite", tmp_path)
    plan = some_plan({"search": {"trials": 2, "searches": 2}}, methods={"triplet": "Triplet"}, reproductions=1)
    put_experiment(store, "1" * 32, "mine", changed_plan(plan, trials={"triplet": 3}))
    store.searches.enlist("1" * 32, {"triplet": [(study, {"search": study}) for study in SCORES]})
    for search, (study, scores) in enumerate(SCORES.items()):
        store.put_run(run := some_run(search=search))
        store.enlist("1" * 32, "triplet", run, study)
        for number, score in enumerate(scores):
            store.searches.put_trial(study, Trial(number=number, setting={}, state="complete", score=score))
    return store


def test_the_best_search_is_the_best_of_all_trials(store):
    (start,) = store.starts()
    assert best_search(store, start, "triplet") == 1


def test_the_history_has_all_trials(store):
    (start,) = store.starts()
    found = histories(store.searches.of_experiment(start.fingerprint), start.plan)
    assert [trial.score for trial in found["triplet"]] == [0.3, 0.4, 0.41]


def test_status_exports_and_boards_name_all_trials(store):
    (start,) = store.starts()
    measured = MeasuredExperiment.from_store(store, start.fingerprint)
    assert start.budget == "2 x 3"
    assert [run.trials for run in store.exported_runs()] == [3, 3]
    assert Source("mine", "store.sqlite", measured).budget == "2 x 3 trials, 1 run each"


def test_a_plan_says_of_how_many_trials_a_search_of_few_settings_makes_some(tmp_path, capsys):
    opened = open_surface(tmp_path, surface_file({"searches": 3, "trials": 6, "probe_ends": True}))
    trials = {"proxy_anchor": 9, "normalized_softmax": 4}
    rows = {key: row.model_copy(update={"trials": trials[key]}) for key, row in opened.plan.rows.items()}
    show_plan({}, replace(opened, plan=opened.plan.model_copy(update={"rows": rows})), 1, 0)
    assert "no other settings are left: Normalized Softmax (4 of 9)" in " ".join(capsys.readouterr().out.split())
