"""The records kept in the repository: whole, readable by today's code, and each with its origin."""

import json
import math
import re
from dataclasses import replace

import pytest

from reports.tables.result_table import count_title, table_of
from reproduce.outputs.tables import latest_sources, stored_experiments
from results.answer.limits import open_ends_of
from results.findings.experiment import answer_of
from results.records import records
from results.records.trials import Trial
from results.spec.ends import ProbedEnd
from results.spec.plan import ExperimentData
from results.store.experiment_results import FOLDER, MeasuredExperiment, latest_starts
from results.store.store import Store
from results.values import fingerprint_of
from tests.support.sample_records import (
    changed_plan,
    put_experiment,
    scores,
    some_plan,
    some_result,
    some_run,
    some_spec,
)

NAMES = [path.name.removesuffix(".json.xz") for path in sorted(FOLDER.glob("*.json.xz"))]


@pytest.mark.parametrize("name", NAMES)
def test_kept_records_make_a_whole_table_and_say_where_they_come_from(name):
    measured = MeasuredExperiment.kept(name)
    found = answer_of(measured)
    table = table_of(found)
    named = found.question.compare
    assert [row.key for row in table.rows] == sorted(measured.plan.titles, key=lambda key: key != named)
    for row in table.rows:
        cells = table.row(row.key)
        count = cells[count_title(found.question)]
        values = [cells[column.title].value for column in table.columns if column.group]
        assert all(math.isfinite(value) and 0 < value <= 1 for value in values), row.key
        searches, runs = measured.plan.experiment.search.searches, measured.plan.rows[row.key].runs
        planned = searches if searches > 1 and row.key != "untrained" else runs
        failed = re.match(r"(\d+) of (\d+) ", count.written or "")
        assert (count.value, planned) == ((int(failed[1]), int(failed[2])) if failed else (planned, planned))
        # A pretrained trunk that is not trained is the same in every run and tested once.
        assert runs in (1 if row.key == "untrained" else runs, searches * measured.plan.reproductions)
    for record in measured.records:
        assert not record.provenance.tree_dirty
        assert len(record.provenance.commit) == 40
        # The protocol `standard` tests one training on all classes.
        folds = measured.plan.experiment.folds if record.protocol == "mlrc" else 1
        assert len(record.specs) == folds
        conditions = measured.plan.experiment.for_row(record.method).conditions
        # What has no loss trains nothing, and does not go on.
        if (longer := measured.plan.experiment.reproduction_epochs) and record.specs[0].method.loss is not None:
            training = conditions.training.model_copy(update={"max_epochs": longer})
            conditions = conditions.model_copy(update={"training": training})
        assert {spec.conditions == conditions for spec in record.specs} == {True}
    assert MeasuredExperiment.from_json(measured.to_json()) == measured


def test_trainings_and_test_curves_can_be_carried(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)
    specs = [some_spec(fold=fold) for fold in range(2)]
    run, again = some_run(specs=tuple(specs)), some_run(specs=(specs[1],), search=1)
    points = (records.TestPoint(iteration=100, scores=scores(0.4)),)
    curve = records.TestCurve(fingerprint=specs[1].fingerprint, points=points)
    for spec in specs:
        store.put_fold(some_result(spec))
    store.put_test_curve(curve)
    plan = some_plan(title="Quick", methods={"triplet": "Triplet"})
    put_experiment(store, "x", "quickstart", plan)
    studies = [(fingerprint_of({"search": search}), {"search": search}) for search in (0, 1)]
    store.searches.enlist("x", {"triplet": studies})
    for search, (study, _) in enumerate(studies):
        store.put_run((run, again)[search])
        store.enlist("x", "triplet", (run, again)[search], study)
        for number, margin in enumerate((0.1, 0.2 + search, 0.4)):
            trial = Trial(number=number, setting={"loss.margin": margin}, state="complete", score=0.5)
            store.searches.put_trial(study, trial)

    measured = MeasuredExperiment.from_store(store, "x", trainings=True)
    assert measured.trainings == {spec.fingerprint: some_result(spec) for spec in specs}
    assert measured.test_curves == {curve.fingerprint: curve}
    assert measured.repeated == {"triplet": (1, 2)}  # The budget is two trials.
    assert MeasuredExperiment.from_json(measured.to_json()) == measured

    plain = MeasuredExperiment.from_store(store, "x")
    assert plain == replace(measured.without_trainings(), searches={}, repeated={})
    assert plain.cut_off == {run.fingerprint: 2, again.fingerprint: 1}
    assert json.loads(plain.to_json())["trainings"] == []


def test_methods_that_the_summary_does_not_name_are_left_out(tmp_path):
    store, kept, titles = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path), "triplet", {}
    for method in ("contrastive", kept, "cosface"):
        run = some_run(method, fold_fingerprints=(method,))
        (spec,) = run.specs
        store.put_fold(some_result(spec))
        point = records.TestPoint(iteration=100, scores=scores(0.4))
        store.put_test_curve(records.TestCurve(fingerprint=spec.fingerprint, points=(point,)))
        store.put_run(run)
        store.enlist("x", method, run)
        titles[method] = method.capitalize()
    store.put_experiment("x", "some", some_plan(methods=titles))
    whole = MeasuredExperiment.from_store(store, "x", trainings=True)
    assert {record.method for record in whole.records} == set(titles)
    store.put_experiment("x", "some", some_plan(methods={kept: "Kept"}))
    fewer = MeasuredExperiment.from_store(store, "x", trainings=True)
    assert {record.method for record in fewer.records} == {kept}
    assert fewer.records == tuple(record for record in whole.records if record.method == kept)
    assert set(fewer.trainings) == {name for record in fewer.records for name in record.fold_fingerprints}
    assert set(fewer.test_curves) <= set(fewer.trainings) < set(whole.trainings)
    assert {method for method, _ in fewer.searches} <= {kept}
    (stored,) = stored_experiments(store)
    assert {record.method for record in stored.measured.records} == set(titles)


def test_methods_of_other_starts_with_the_same_settings_are_used_for_claims(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)
    data = ExperimentData(fingerprint="d" * 32, samples=10, classes=8)
    starts = {"1": ("a", "b"), "2": ("a",), "3": ("a", "c"), "4": ("a", "z"), "5": ("a", "y")}
    for start, methods in starts.items():
        settings = {"methods": methods, "seed": int(start == "4")}
        plan = some_plan(methods=dict.fromkeys(methods, ""), settings=settings)
        plan = plan.model_copy(update={"data": data})
        runs = [some_run(method, fingerprint=f"{start}{method}") for method in methods]
        put_experiment(store, start, "other" if start == "5" else "some", plan, runs)
    measured = MeasuredExperiment.from_store(store, "2")
    assert [record.fingerprint for record in measured.records] == [some_run("a", fingerprint="2a").fingerprint]
    found = [[record.fingerprint for record in one.measured.records] for one in stored_experiments(store)]
    expected = [["5a", "5y"], ["4a", "4z"], ["3a", "3c", "1b"]]
    assert found == [[some_run(text[1], fingerprint=text).fingerprint for text in texts] for texts in expected]


SEARCHED = {"loss.margin": {"scale": "linear", "low": 0.0, "high": 1.0}}


def begun(store, start, searched="", given="", *, trials=2, searches=2, settings=None, finished=True):
    """Put a start of an experiment into a store, with a run of each method, or of the first one alone."""
    methods = [*searched, *given]
    plan = some_plan(
        {"search": {"trials": 2, "searches": searches}, **(settings or {})},
        methods=dict.fromkeys(methods, ""),
        runs=dict.fromkeys(methods, 1),
        ranges=dict.fromkeys(searched, SEARCHED),
    )
    plan = changed_plan(plan, trials=dict.fromkeys(searched, trials))
    plan = plan.model_copy(update={"data": ExperimentData(fingerprint="d" * 32, samples=10, classes=8)})
    store.put_experiment(start, "some", plan)
    for method in methods if finished else methods[:1]:
        study = f"{start}{method}" if method in searched else None
        store.put_run(run := some_run(method, fingerprint=f"{start}{method}"))
        store.searches.enlist(start, {method: [(study, {"study": study})] if study else []})
        store.enlist(start, method, run, study)


def methods_of(store, start):
    return [record.method for record in MeasuredExperiment.of_all_starts(store, start).records]


def latest_of(store):
    return [start.fingerprint for start in latest_starts(store)]


def test_methods_of_other_starts_are_joined_if_their_searches_got_as_much(tmp_path):
    store = Store(tmp_path / "store.sqlite", tmp_path)
    begun(store, "1", "ab", "x", trials=3)
    begun(store, "2", "ac", "y")
    begun(store, "3", "ad", trials=3)
    begun(store, "4", "", "z")
    assert methods_of(store, "3") == ["a", "d", "z", "y", "b", "x"], "what is not searched has no trials"
    assert methods_of(store, "2") == ["a", "c", "y", "z", "x"]
    assert latest_of(store) == ["3", "2"], "each budget; without a search there is none"


def test_methods_that_were_searched_more_often_are_not_joined(tmp_path):
    store, until_decided = Store(tmp_path / "store.sqlite", tmp_path), {"trials": 2, "until_decided": True}
    for start, methods, searches in (("1", "ab", 3), ("2", "ac", 6), ("3", "ad", 3)):
        begun(store, start, methods, settings={"search": {**until_decided, "searches": searches}})
    assert methods_of(store, "3") == ["a", "d", "b"]
    assert latest_of(store) == ["3", "2"]


def test_boards_know_what_held_up_methods_of_other_starts(tmp_path):
    store, rows = (
        Store(tmp_path / "store.sqlite", tmp_path),
        {"1": ("press", "shut", "fewer", "press_default"), "2": ("a",)},
    )
    shut = ProbedEnd(
        method="shut", target="loss.margin", end="low", low=0, high=1, beyond=-0.25, probes=(0.4,), runs=(0.5,)
    )
    for start, methods in rows.items():
        plan = some_plan(
            {"search": {"trials": 2, "searches": 3}},
            methods={key: key.capitalize() for key in methods},
            reproductions=1,
            ranges=dict.fromkeys(methods, SEARCHED),
            defaults={key: "press" for key in methods if key == "press_default"},
            probed=[shut.model_dump(mode="json")] if "shut" in methods else [],
            data={"fingerprint": "d" * 32, "samples": 10, "classes": 8},
        )
        at = {"loss.margin": 0.5 if start == "2" else 0.0}
        runs = [
            some_run(key, search=search, fingerprint=f"{key}{search}", hyperparameters=at)
            for key in methods
            for search in range(2 if key == "fewer" else 3)
        ]
        put_experiment(store, start, "some", plan, runs)
    (source,) = latest_sources(store)
    measured = source.measured
    assert measured.plan.titles == {"a": "A", "press": "Press", "shut": "Shut"}, "only complete methods are compared"
    assert {run.method for run in measured.records} == {"a", "press", "shut"}
    assert {key: open_ends_of(measured, key) for key in measured.plan.rows} == {
        "a": [],
        "press": [("loss.margin", "low")],
        "shut": [],
    }


def test_an_interrupted_start_with_another_method_does_not_hide_the_finished_one(tmp_path):
    store = Store(tmp_path / "store.sqlite", tmp_path)
    begun(store, "1", "abc")
    begun(store, "2", "ad")
    begun(store, "3", "bce", finished=False)
    assert latest_of(store) == ["2"]
    assert methods_of(store, "2") == ["a", "d", "b", "c"]
    begun(store, "3", "bce")
    assert latest_of(store) == ["3"]


def test_of_starts_that_are_all_unfinished_the_latest_is_taken(tmp_path):
    store = Store(tmp_path / "store.sqlite", tmp_path)
    begun(store, "1", "ab", finished=False)
    begun(store, "2", "ac", finished=False)
    assert latest_of(store) == ["2"]
