"""The store: what is put in comes out, the first result stays, and frames have their columns."""

import pandas as pd
import pytest

from results.records import records
from results.records.frame import runs_table
from results.records.records import EVALUATION_VERSION, ClassScores
from results.records.trials import Trial
from results.spec.component import Component
from results.spec.method import Method
from results.store.store import Store, StoreError
from tests.support.sample_records import put_experiment, scores, some_plan, some_result, some_run, some_spec


@pytest.fixture
def file(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(file):
    return Store(file, file.parent / "artifacts")


def opened(file):
    return Store(file, file.parent / "artifacts")


def test_the_first_result_of_a_training_stays(store, file):
    spec = some_spec()
    assert store.fold_result(spec.fingerprint) is None
    store.put_fold(some_result(spec, 0.5))
    store.put_fold(some_result(spec, 0.6))
    assert opened(file).fold_result(spec.fingerprint) == some_result(spec, 0.5)
    assert store.artifacts == file.parent / "artifacts"


def test_the_first_evaluation_of_a_run_stays(store):
    store.put_run(some_run(separated=0.5))
    store.put_run(some_run(separated=0.9))
    assert store.run(some_run().fingerprint) == some_run(separated=0.5)
    assert store.run(some_run(run=1).fingerprint) is None


def test_any_number_of_trainings_is_looked_up_at_once(store):
    specs = [some_spec(seed=seed) for seed in range(40_000, 41_203)]
    for spec in specs[::600]:
        store.put_fold(some_result(spec))
    store.put_fold(some_result(some_spec()))
    fingerprints = [spec.fingerprint for spec in specs]
    expected = {spec.fingerprint: some_result(spec) for spec in specs[::600]}
    assert store.fold_results(fingerprints) == expected
    assert store.finished_folds(fingerprints) == set(expected)
    assert store.fold_results([]) == {}
    assert store.finished_folds([]) == set()
    assert [one.iterations for one in store.trainings()] == [200] * 4


def test_trainings_and_curves_are_read_back_as_frames(store):
    for fold in (1, 0):
        spec = some_spec(fold=fold)
        store.put_fold(some_result(spec, 0.1 + fold / 2))
    folds = store.table("folds")
    assert list(folds.columns) == [
        *("fingerprint", "dataset", "method", "fold", "status", "best_map_at_r", "iterations", "wall_time"),
    ]
    assert folds["fold"].tolist() == [0, 1]
    assert folds["best_map_at_r"].tolist() == [0.1, 0.6]
    curves = store.table("curves")
    mine = curves[curves["fingerprint"] == some_spec(fold=1).fingerprint]
    assert mine["iteration"].tolist() == [0, 100, 200]
    assert mine["map_at_r"].tolist() == [0.0, 0.3, 0.6]
    assert pd.isna(mine["loss"].iloc[0])


def test_further_metrics_have_columns_where_a_run_has_them(store):
    put_experiment(store, "x", "some", some_plan(), [some_run("contrastive")])
    assert not any(column.endswith("nmi") for column in runs_table(store.exported_runs()))
    further = {"recall@2": 0.6, "nmi": 0.7}
    put_experiment(store, "x", "some", some_plan(), [some_run("triplet", metrics_separated=further, steps=9)])
    runs = runs_table(store.exported_runs()).set_index("method")
    assert runs.loc["triplet", ["separated_recall@2", "separated_nmi", "steps"]].tolist() == [0.6, 0.7, 9]
    assert runs.loc["contrastive", ["separated_recall@2", "separated_nmi", "steps"]].isna().all()
    assert runs.loc["triplet", "concatenated_map_at_r"] == pytest.approx(0.6 / 4)
    assert "concatenated_nmi" not in runs


def test_class_scores_have_a_row_per_class(store):
    kept = ClassScores(queries=(3, 5), separated=(scores(0.1), scores(0.2)), concatenated=(scores(0.3), scores(0.4)))
    store.put_run(some_run("contrastive"))
    store.put_run(some_run("triplet", 1, class_scores=kept))
    frame = store.table("class_scores")
    assert frame[["method", "run", "class_rank", "queries"]].to_numpy().tolist() == [
        ["triplet", 2, 0, 3],
        ["triplet", 2, 1, 5],
    ]
    assert frame["separated_precision_at_1"].tolist() == [0.1, 0.2]
    assert frame["concatenated_map_at_r"].tolist() == [0.075, 0.1]


def test_the_experiment_started_last_comes_first(store):
    for name in ("a", "b", "c", "a"):
        store.put_experiment(f"fingerprint-{name}", name, some_plan(title=name))
    store.put_experiment("another", "b", some_plan())
    assert [start.name for start in store.starts()] == ["b", "a", "c", "b"]
    assert store.latest_experiments() == {"b": "another", "a": "fingerprint-a", "c": "fingerprint-c"}


def test_a_clock_that_was_set_back_shows_no_older_experiment_as_the_latest(store):
    store.put_experiment("a", "some", some_plan())
    with store.database.writing() as connection:
        connection.execute("UPDATE experiments SET last_started = '2999-01-01T00:00:00.000000+00:00'")
    for name in "bab":
        store.put_experiment(name, "some", some_plan())
        assert store.latest_experiments() == {"some": name}


def test_the_latest_start_of_an_experiment_says_its_methods(store):
    store.put_experiment("x", "quickstart", some_plan(methods={"triplet": "Triplet"}))
    store.put_experiment("x", "quickstart", some_plan(methods={"triplet": "Triplet", "cosface": "CosFace"}))
    assert list(store.experiment("x").rows) == ["triplet", "cosface"]
    assert len(store.starts()) == 1
    with pytest.raises(StoreError, match="holds no experiment nowhere"):
        store.experiment("nowhere")


def test_an_experiments_runs_come_by_method_search_and_number(store):
    store.put_experiment("x", "quickstart", some_plan())
    store.put_experiment("y", "other", some_plan())
    second = some_run("triplet", 0, search=1, fingerprint="of search 1")
    for run in (second, some_run("triplet", 1), some_run("triplet", 0), some_run("cosface", 0)):
        store.put_run(run)
        store.enlist("x", run.method, run)
    found = [(run.method, run.search, run.run) for run in store.experiment_runs("x")]
    assert found == [("cosface", 0, 0), ("triplet", 0, 0), ("triplet", 0, 1), ("triplet", 1, 0)]
    assert store.experiment_runs("y") == []


def test_of_two_runs_with_one_place_the_later_counts(store):
    store.put_experiment("x", "quickstart", some_plan())
    first, another = some_run("triplet", 0), some_run("triplet", 0, fingerprint="another", separated=0.7)
    for run in (first, first, another):
        store.put_run(run)
        store.enlist("x", "triplet", run)
    assert [run.fingerprint for run in store.experiment_runs("x")] == [another.fingerprint]


def test_runs_of_a_study_that_the_experiment_no_longer_has_are_left_out(store):
    store.put_experiment("x", "quickstart", some_plan())
    store.put_run(some_run(study="old"))
    for study in ("old", "new"):
        store.searches.enlist("x", {"triplet": [(study, {})]})
        store.enlist("x", "triplet", some_run(), "old")
        assert len(store.experiment_runs("x")) == (study == "old")


def test_a_run_of_a_given_setting_that_a_search_found_too_has_the_values_of_the_search(store):
    given = some_run(hyperparameters={})
    store.put_run(given)
    method = given.specs[0].method
    assert method.loss.arguments["margin"] == 0.1
    store.searches.put_study("found", {})
    store.searches.put_trial("found", Trial(number=0, setting={"loss.margin": 0.7}))
    for experiment, study in (("given", None), ("searched", "found")):
        store.put_experiment(experiment, experiment, some_plan())
        store.searches.enlist(experiment, {"triplet": [(study, {})] if study else []})
        store.enlist(experiment, "triplet", given, study)
    assert [run.hyperparameters for run in store.experiment_runs("given")] == [{}]
    assert [run.hyperparameters for run in store.experiment_runs("searched")] == [{"loss.margin": 0.1}]


def some_curve(fingerprint, best=0.5, **changes):
    points = tuple(records.TestPoint(iteration=100 * i, scores=scores(best * i / 2)) for i in range(3))
    return records.TestCurve(fingerprint=fingerprint, points=points, **changes)


def test_test_curves_come_out_as_they_were_put_in(store, file):
    assert store.test_curve("a") is None
    store.put_test_curve(some_curve("a"))
    store.put_test_curve(some_curve("a", 0.9))
    store.put_test_curve(some_curve("b"))
    assert opened(file).test_curve("a") == some_curve("a")
    assert store.test_curves(["b", "c", "a"]) == {"a": some_curve("a"), "b": some_curve("b")}
    points = store.table("test_points")
    assert points["iteration"].tolist() == [0, 100, 200] * 2
    assert points["map_at_r"].tolist() == [0.0, 0.0625, 0.125] * 2


def test_a_test_curve_of_another_evaluation_is_as_if_absent_and_is_replaced(store):
    store.put_test_curve(some_curve("a", evaluation_version=EVALUATION_VERSION - 1))
    assert store.test_curve("a") is None
    assert len(store.table("test_points")) == 0
    store.put_test_curve(some_curve("a", 0.7))
    assert store.test_curve("a") == some_curve("a", 0.7)


HASH = "0123456789abcdef"


def test_a_run_has_a_row_for_each_experiment_that_lists_it(store):
    summary = {"methods": {"triplet": "Triplet"}}
    store.put_experiment("first", "glyphs", some_plan(title="Few trials", trials=5, **summary))
    store.put_experiment("second", "other", some_plan({"search": {"trials": 9, "searches": 2}}, **summary))
    spec = some_spec(method=Method(name="triplet", loss=Component(name=f"./mine.py:Mine (sha256 {HASH})")))
    store.put_fold(some_result(spec))
    runs = [some_run(run=number, fold_fingerprints=(f"training {number}",)) for number in range(3)]
    runs[0] = some_run(run=0, specs=(spec,), fold_scores=(scores(0.5),))
    for run in runs:
        store.put_run(run)
    for experiment, run in (("first", runs[0]), ("second", runs[0]), ("second", runs[1])):
        store.enlist(experiment, "triplet", run)
    frame = runs_table(store.exported_runs())
    assert frame[["experiment", "run"]].values.tolist() == [["other", 1], ["other", 2], ["glyphs", 1]]
    assert frame["experiment_fingerprint"].tolist() == ["second", "second", "first"]
    assert frame["title"].tolist()[1:] == ["Some experiment", "Few trials"]
    assert frame["trials"].tolist() == [9, 9, 5]
    assert frame["searches"].tolist() == [2, 2, 1]
    assert frame["settings"].tolist() == ['{"loss.margin": 0.1}'] * 3
    assert frame["source_hash"].tolist() == [HASH, "", HASH]
