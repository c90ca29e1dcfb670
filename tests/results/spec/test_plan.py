"""What the store keeps of a started experiment: its JSON form."""

import json

from results.spec.plan import ExperimentData
from results.store.store import Store
from tests.support.sample_records import changed_plan, some_plan

EXPERIMENT = {
    "title": "T",
    "dataset": {"name": "glyphs", "root": "images"},
    "methods": ["triplet"],
    "trunk": {"name": "small_conv", "weights": "random"},
}


def test_the_store_keeps_the_experiment_without_the_folder(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)
    plan = some_plan(methods={"b": "B", "a": "A"}, runs={"b": 1, "a": 3}, settings=EXPERIMENT)
    store.put_experiment("x", "name", plan)
    (row,) = store.database.rows("SELECT content FROM experiments")
    kept = json.loads(row["content"])
    assert list(kept) == ["methods", "runs", "experiment", "interim_looks", "data", "ranges", "transductive"]
    assert list(kept["methods"]) == ["b", "a"]
    assert "root" not in kept["experiment"]["dataset"]
    read = store.experiment("x")
    assert read.experiment == plan.experiment.model_copy(update={"dataset": read.experiment.dataset})
    assert read.experiment.without_folder() == kept["experiment"]
    assert (read.title, read.dataset, read.trials, read.reproductions) == ("T", "glyphs", 2, 3)


def test_a_method_with_one_planned_run_among_several_is_constant():
    runs = {"untrained": 1, "a": 3, "b": 1}
    plan = some_plan(methods=dict.fromkeys(runs, ""), reproductions=3, runs=runs)
    assert plan.constant == {"untrained", "b"}

    def constant(runs, **changes):
        return some_plan(methods=dict.fromkeys(runs, ""), runs=runs, **changes).constant

    assert not constant({"a": 1}, reproductions=1)
    searched = {"search": {"trials": 2, "searches": 3}}
    assert constant({"untrained": 1, "a": 3}, settings=searched, reproductions=1) == {"untrained"}
    given = {"search": {"trials": 0, "searches": 3}}
    assert not constant({"untrained": 1, "a": 1}, settings=given, reproductions=1)


def test_a_test_of_queries_against_a_gallery_says_how_many_there_are():
    data = ExperimentData(fingerprint="d", samples=900, classes=30, queries=90)
    assert (some_plan().tested(360), some_plan(data=data).tested(360)) == (
        "360 images",
        "90 queries among 270 other images",
    )


def test_a_method_that_knows_the_test_images_is_compared_with_no_other():
    plan = some_plan(methods={"a": "A", "b": "B"}, runs={"a": 1, "b": 1})
    assert list(plan.compared) == ["a", "b"]
    marked = changed_plan(plan, transductive=["b"])
    assert list(marked.compared) == ["a"]
    assert marked.left_out["b"].note.startswith("Knows the test images")
