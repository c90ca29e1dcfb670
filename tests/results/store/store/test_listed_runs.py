"""Which runs are of which experiments, as rows for export."""

import pandas as pd
import pytest

from reproduce.commands.export import export_tables
from reproduce.errors import InputError
from results.spec.training_spec import Component, MethodSpec
from results.store.store import Store
from tests.support.sample_records import put_incomplete_experiment, some_result, some_run, some_spec, some_summary

HASH = "0123456789abcdef"


@pytest.fixture
def store(tmp_path):
    """Two experiments that share a run, one that was kept without its settings, and a run of none."""
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    summary = {"methods": {"triplet": "Triplet"}}
    store.put_experiment("first", "glyphs", some_summary(title="Few trials", trials=5, **summary))
    store.put_experiment("second", "other", some_summary({"search": {"trials": 9, "searches": 2}}, **summary))
    spec = some_spec(method=MethodSpec(name="triplet", loss=Component(name=f"./mine.py:Mine (sha256 {HASH})")))
    result = some_result(spec)
    store.put_fold(spec, result)
    store.put_fold(some_spec(seed=8), some_result(some_spec(seed=8)))
    runs = [some_run(run=number, fold_fingerprints=(f"training {number}",)) for number in range(3)]
    runs[0] = some_run(run=0, fold_fingerprints=(result.fingerprint,))
    for run in runs:
        store.put_run(run)
    for experiment, run in (("first", runs[0]), ("second", runs[0]), ("second", runs[1])):
        store.enlist(experiment, "triplet", run)
    return store


def test_a_run_has_a_row_for_each_of_its_experiments(store):
    runs = store.runs()
    assert runs[["experiment", "run"]].values.tolist() == [["other", 0], ["other", 1], ["glyphs", 0], ["", 2]]
    assert runs["experiment_fingerprint"].tolist() == ["second", "second", "first", ""]
    assert runs["title"].tolist()[:3] == ["Some experiment", "Some experiment", "Few trials"]
    assert runs["trials"].tolist()[:3] == [9, 9, 5]
    assert runs["searches"].tolist()[:3] == [2, 2, 1]
    assert runs["trials"].isna().tolist() == [False, False, False, True]


def test_rows_have_their_setting_and_the_hash_of_a_users_source(store):
    runs = store.runs().set_index(["experiment", "run"])
    assert runs.loc[("glyphs", 0), "settings"] == '{"loss.margin": 0.1}'
    assert runs["source_hash"].tolist() == [HASH, "", HASH, ""]


def test_an_experiment_that_was_kept_without_its_settings_is_listed_by_name(store):
    put_incomplete_experiment(store, "third", "old")
    store.enlist("third", "triplet", some_run(run=1, fold_fingerprints=("training 1",)))
    row = store.runs().iloc[0]
    assert row["experiment"] == "old"
    assert pd.isna(row["title"])


def test_one_experiment_can_be_exported(store, tmp_path):
    folder = tmp_path / "exported"
    folder.mkdir()
    export_tables(store, "csv", folder, "glyphs")
    runs, folds = (pd.read_csv(folder / f"{name}.csv") for name in ("runs", "folds"))
    assert runs[["experiment", "run"]].values.tolist() == [["glyphs", 0]]
    assert len(folds) == 1, "not the training of no run"
    with pytest.raises(InputError, match="no experiment 'none'"):
        export_tables(store, "csv", folder, "none")
