"""`export study` writes a study that Optuna opens, and with it its importances and its dashboard."""

import time
from datetime import datetime, timedelta

import optuna
import pytest

from reproduce.outputs import export_studies
from reproduce.outputs.find_runs import find_experiment
from results.records.trials import Trial
from results.store.searches import StoredStudy
from results.store.store import Store
from tests.support.command_line import refused
from tests.support.sample_records import some_result, some_spec
from tests.support.surfaces import run_surface, surface_file


def interrupted(done, total):
    raise KeyboardInterrupt


def test_an_exported_study_has_our_trials_for_optuna(say, tiny_run, tmp_path):
    url = f"sqlite:///{tiny_run}/runs/store.sqlite"
    file = tmp_path / "studies.sqlite"
    answer = say("export", "study", "tiny", "--to", file, "--store", url)
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
        made = [*store.fold_results(trial.user_attrs["trainings"]).values()]
        ends = [datetime.fromisoformat(result.provenance.finished_at).timestamp() for result in made]
        starts = [end - result.wall_time for end, result in zip(ends, made, strict=True)]
        assert trial.datetime_complete.timestamp() == pytest.approx(max(ends), abs=1e-3)
        assert trial.datetime_start.timestamp() == pytest.approx(min(starts), abs=1e-3)
    assert set(optuna.importance.get_param_importances(study)) == {"loss.pos_margin", "loss.neg_margin"}
    assert study.direction.name == "MAXIMIZE"
    with pytest.raises(KeyboardInterrupt):
        export_studies.export_studies(store, find_experiment(store, "tiny"), tmp_path / "other.sqlite", interrupted)
    assert [*tmp_path.iterdir()] == [file], "an interrupted export leaves nothing"
    refused(say("export", "study", "tiny", "--to", file, "--store", url))


def test_trials_that_another_experiment_added_are_left_out(tmp_path):
    for trials in (2, 3):
        run_surface(tmp_path, surface_file({"trials": trials}, other="proxy_nca"), lambda method, spec: 0.3)
    store = Store(tmp_path / "store.sqlite", tmp_path)
    for start in store.starts():
        file = tmp_path / f"{start.plan.trials}.sqlite"
        export_studies.export_studies(store, start, file)
        studies = optuna.get_all_study_summaries(export_studies.url_of(file))
        assert [study.n_trials for study in studies] == [start.plan.trials] * 2


def test_a_trial_is_as_long_as_it_was_where_clocks_are_put_back(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        of_fold = some_result(some_spec())
        ends = of_fold.provenance.model_copy(update={"finished_at": "2026-10-25T01:10:00+00:00"})
        fold = of_fold.model_copy(update={"provenance": ends, "wall_time": 1200.0})
        made = export_studies._trial(Trial(number=0, setting={}, state="complete", score=0.2), {}, [fold])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert made.duration == timedelta(minutes=20)


def test_a_raced_trial_is_pruned_with_its_expected_score():
    identity = {"space": [{"target": "loss.margin", "scale": "linear", "low": 0.0, "high": 1.0}]}
    setting, expected = {"loss.margin": 0.6}, 0.2
    raced = Trial(number=0, setting=setting, state="raced", score=expected, fold_scores=(0.25,), trainings=("f",))
    (trial,) = export_studies._trials(StoredStudy("f", identity, (raced,)))
    assert (trial.state.name, trial.params) == ("PRUNED", setting)
    assert trial.user_attrs["expected"] == expected
    assert trial.intermediate_values == {0: 0.25}
