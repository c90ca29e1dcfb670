"""`export study` writes what Optuna, its importances and Optuna Dashboard open."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from wsgiref.util import setup_testing_defaults

import optuna
import pytest

from reproduce.outputs.export_studies import export_studies, importances
from reproduce.outputs.find_runs import find_experiment
from results.records.trials import Trial
from results.store.searches import StoredStudy
from results.store.store import Store
from tests.support.command_line import ask

dashboard = pytest.importorskip("optuna_dashboard")


def get(app: Callable[..., Any], path: str) -> Any:
    """Return the JSON that the dashboard's page requests."""
    environ: dict[str, Any] = {"PATH_INFO": path, "REQUEST_METHOD": "GET"}
    setup_testing_defaults(environ)
    statuses: list[str] = []
    body = b"".join(app(environ, lambda status, headers, error=None: statuses.append(status)))
    assert statuses == ["200 OK"]
    return json.loads(body)


def test_an_exported_study_has_our_trials_for_optuna_and_its_dashboard(tiny_run, tmp_path, capsys, monkeypatch):
    url = f"sqlite:///{tiny_run}/runs/store.sqlite"
    file = tmp_path / "studies.sqlite"
    answer = ask("export", "study", "tiny", "--to", str(file), "--store", url, capsys=capsys, monkeypatch=monkeypatch)
    assert (answer.code, answer.out) == (0, f"written to sqlite:///{file}: tiny contrastive\n")
    study = optuna.load_study(study_name="tiny contrastive", storage=f"sqlite:///{file}")
    store = Store(url, tiny_run / "runs" / "artifacts")
    (stored,) = store.searches.of_experiment(find_experiment(store, "tiny").fingerprint).values()
    assert [trial.params for trial in study.trials] == [trial.setting for trial in stored.trials]
    assert study.best_value == max(trial.score for trial in stored.trials)
    folds = store.table("folds").set_index("fingerprint")["best_map_at_r"]
    for trial in study.trials:
        of_folds = folds[trial.user_attrs["trainings"]]
        assert list(trial.intermediate_values.values()) == of_folds.tolist()
        assert trial.value == pytest.approx(of_folds.mean(), rel=1e-12)
        made = [result for _, result in store.fold_results(trial.user_attrs["trainings"]).values()]
        ends = [datetime.fromisoformat(result.provenance.finished_at).timestamp() for result in made]
        starts = [end - result.wall_time for end, result in zip(ends, made, strict=True)]
        assert trial.datetime_complete.timestamp() == pytest.approx(max(ends), abs=1e-3)
        assert trial.datetime_start.timestamp() == pytest.approx(min(starts), abs=1e-3)
    assert set(optuna.importance.get_param_importances(study)) == {"loss.pos_margin", "loss.neg_margin"}
    (summary,) = get(dashboard.wsgi(f"sqlite:///{file}"), "/api/studies")["study_summaries"]
    assert (summary["study_name"], summary["directions"]) == ("tiny contrastive", ["maximize"])
    again = ask("export", "study", "tiny", "--to", str(file), "--store", url, capsys=capsys, monkeypatch=monkeypatch)
    assert (again.code, again.err.count("\n")) == (2, 1)


def test_a_raced_trial_is_pruned_with_its_expected_score(tmp_path, raced_store):
    store, experiment = raced_store
    export_studies(store, experiment, tmp_path / "studies.sqlite")
    (study,) = optuna.get_all_study_summaries(f"sqlite:///{tmp_path}/studies.sqlite")
    trials = optuna.load_study(study_name=study.study_name, storage=f"sqlite:///{tmp_path}/studies.sqlite").trials
    assert [trial.state.name for trial in trials] == ["COMPLETE", "PRUNED"]
    assert trials[1].user_attrs["expected"] == 0.2
    assert trials[1].intermediate_values == {0: 0.25}


@pytest.fixture
def raced_store(tmp_path):
    """A store with a search of two trials, of which the second got one of two folds."""
    from results.values import fingerprint_of
    from tests.support.sample_records import some_summary

    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)
    store.put_experiment("e" * 32, "some", some_summary(methods={"triplet": "Triplet"}))
    identity = {"space": [{"target": "loss.margin", "scale": "linear", "low": 0.0, "high": 1.0}]}
    name = fingerprint_of(identity)
    store.searches.enlist("e" * 32, {"triplet": [(name, identity)]})
    for number, scores, state, score in ((0, (0.5, 0.5), "complete", 0.5), (1, (0.25,), "raced", 0.2)):
        folds = tuple(f"{number} {fold}" for fold in range(len(scores)))
        setting = {"loss.margin": 0.5 + number / 10}
        trial = Trial(number=number, setting=setting, state=state, score=score, fold_scores=scores, trainings=folds)
        store.searches.put_trial(name, trial)
    return store, find_experiment(store, "some")


def test_importances_find_the_hyperparameter_that_decides():
    space = [{"target": name, "scale": "linear", "low": 0.0, "high": 1.0} for name in ("loss.a", "loss.b")]
    values = [(number / 30, (number * 7 % 30) / 30) for number in range(30)]
    trials = tuple(
        Trial(number=n, setting={"loss.a": a, "loss.b": b}, state="complete", score=a / 2, fold_scores=(a / 2,))
        for n, (a, b) in enumerate(values)
    )
    found = importances([StoredStudy("f", {"space": space}, trials)])
    assert found["loss.a"] > 0.9
    assert sum(found.values()) == pytest.approx(1)
    assert importances([StoredStudy("f", {"space": space}, trials[:3])]) == {}
    parts = [StoredStudy("f", {"space": space}, trials[start::11]) for start in range(11)]
    assert importances(parts) == pytest.approx(found)
