"""What the store keeps of a started experiment: its JSON form, and settings of other versions of the suite."""

import json

import pytest
import sqlalchemy as sa

from results.records.experiment_summary import ExperimentSummary, OtherSettings, StoppedMethod
from results.spec.experiment_spec import Experiment
from results.store.schema import EXPERIMENTS
from results.store.store import IncompleteExperimentError, Store
from tests.support.sample_records import put_incomplete_experiment, some_summary

EXPERIMENT = {
    "title": "T",
    "dataset": {"name": "glyphs", "root": "images"},
    "methods": ["triplet"],
    "trunk": {"name": "small_conv", "weights": "random"},
}
OTHER = {"dataset": {"name": "cub200", "mirror": "x"}, "protocol": "mlrc", "a key of tomorrow": [1, None]}


@pytest.fixture
def store(tmp_path):
    return Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)


def kept_text(store):
    with store._database.reading() as connection:
        return connection.execute(sa.select(EXPERIMENTS.c.settings)).scalar_one()


def test_the_store_keeps_the_experiment_under_its_keys_without_the_folder(store):
    summary = some_summary(methods={"b": "B", "a": "A"}, runs={"b": 1, "a": 3}, settings=EXPERIMENT)
    store.put_experiment("x", "name", summary)
    kept = json.loads(kept_text(store))
    assert list(kept) == ["title", "methods", "trials", "reproductions", "runs", "settings"]
    assert list(kept["methods"]) == ["b", "a"]
    assert kept["settings"]["dataset"] == {"name": "glyphs", "subset": False, "skip_broken_images": False}
    assert "split" not in kept["settings"], "fields that came later are not written at their default"
    read = store.experiment("x")
    assert read.experiment == Experiment.model_validate({**EXPERIMENT, "dataset": {"name": "glyphs"}})
    assert (read.dataset, read.protocol) == ("glyphs", "mlrc")
    assert read.written_settings == kept["settings"]


def test_a_method_with_one_planned_run_among_several_is_constant():
    runs = {"untrained": 1, "a": 3, "b": 1}
    summary = some_summary(methods=dict.fromkeys(runs, ""), reproductions=3, runs=runs)
    assert summary.constant == {"untrained", "b"}
    stopped = StoppedMethod(method="b", leader="a", runs=1, difference=0.1, p=0.001, level=0.01)
    assert summary.model_copy(update={"stopped": (stopped,)}).constant == {"untrained"}
    assert not some_summary(reproductions=1, runs={"a": 1}).constant


def test_settings_of_another_version_are_kept_as_they_are(store):
    summary = some_summary(settings=OTHER)
    assert summary.settings == OtherSettings(OTHER)
    assert summary.experiment is None
    assert (summary.dataset, summary.protocol) == ("cub200", "mlrc")
    store.put_experiment("x", "name", summary)
    assert json.loads(kept_text(store))["settings"] == OTHER
    assert store.experiment("x") == summary


@pytest.mark.parametrize("settings", [{}, {"dataset": "glyphs"}, {"dataset": None}])
def test_settings_without_a_readable_dataset_name_none(settings):
    assert (some_summary(settings=settings).dataset, some_summary(settings=settings).protocol) == ("", "")


def test_an_experiment_without_settings_is_written_without_them():
    summary = some_summary()
    assert list(summary.model_dump(mode="json")) == ["title", "methods", "trials", "reproductions"]
    assert (summary.experiment, summary.dataset, summary.protocol, summary.written_settings) == (None, "", "", {})


def test_a_key_of_another_version_beside_the_known_ones_is_no_obstacle():
    kept = {**some_summary().model_dump(mode="json"), "later": 1}
    assert ExperimentSummary.model_validate(kept) == some_summary()


def test_what_every_table_needs_must_have_been_kept(store):
    put_incomplete_experiment(store, "x", "proxygml_table1")
    said = "experiment 'proxy_gml_table1' in .* was kept without its methods, reproductions, title, trials; start it"
    with pytest.raises(IncompleteExperimentError, match=said):
        store.experiment("x")


def test_an_experiment_under_an_old_name_is_listed_under_the_new_one(store):
    store.put_experiment("x", "proxygml_table2/cub200_bn_512", some_summary())
    assert store.latest_experiments() == {"proxy_gml_table2/cub200_bn_512": "x"}
    store.put_experiment("y", "proxy_gml_table2/cub200_bn_512", some_summary())
    assert store.latest_experiments() == {"proxy_gml_table2/cub200_bn_512": "y"}
    assert store.experiments()["fingerprint"].tolist() == ["y", "x"]
