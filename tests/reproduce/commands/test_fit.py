"""`reproduce fit`: the found setting is trained on all classes, and nothing of it gets into store and tables."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import torch

from protocols import fit as fitting
from protocols.datasets.dataset import DataRequest
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.splits import SplitError, named_split
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from reproduce.outputs.export_models import UNTESTED, checkpoint_epochs
from reproduce.outputs.find_runs import best_search, find_experiment, find_runs
from reproduce.run.open_data import OpenedData
from results.spec.conditions import ImageSettings
from results.spec.data_choice import DataChoice
from results.store.store import Store
from tests.support.feature_files import some_features, write_features
from tests.support.sample_records import some_result, some_spec

FEATURES = """\
title: Features
dataset: {name: features, root: rows}
methods: [untrained, proxy_anchor]
embedding_size: 4
training:
  batch_size: 16
  iterations_per_epoch: 4
  max_epochs: 3
  validate_every: 1
  optimizer: {name: Adam, lr: 1.0e-2, arguments: {}}
search: {trials: 2, searches: 2}
reproductions: 2
variants: [{of: lda, key: all_discriminants, title: All discriminants, set: {}}]
with: {all_discriminants: {embedding_size: null}}
"""
ROOM = ("--method", "proxy_anchor", "--device", "cpu")
"""Without --data the folder is that of mine.yaml."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished run on features of 16 classes."""
    folder = tmp_path_factory.mktemp("fit")
    write_features(folder / "rows", some_features(per_class=6), np.repeat(np.arange(16), 6))
    (folder / "mine.yaml").write_text(FEATURES)
    return folder


@pytest.fixture
def say(say, finished, monkeypatch):
    monkeypatch.chdir(finished)
    if not (finished / "runs").exists():
        answer = say("run", "mine.yaml", "--workers", "1", "--device", "cpu").done()
        assert "features: 96 rows of 16 classes" in answer.out
    return say


def store_of(folder):
    return Store(folder / "runs" / "store.sqlite", folder / "runs" / "artifacts")


def dump(folder):
    with sqlite3.connect(folder / "runs" / "store.sqlite") as database:
        return list(database.iterdump())


def test_the_setting_is_trained_on_all_classes_and_the_store_does_not_change(finished, say, tmp_path):
    store, before = store_of(finished), dump(finished)
    files = sorted(finished.rglob("*"))
    answer = say("fit", "mine", *ROOM, "--to", tmp_path / "all").done()
    assert dump(finished) == before
    assert sorted(finished.rglob("*")) == files
    about = json.loads((tmp_path / "all" / "model.json").read_text())
    assert (about["trained_on"]["classes"], about["trained_on"]["samples"]) == (16, 96)
    assert about["note"].startswith(f"{UNTESTED} Expect of it on new classes like those of the test: MAP@R ")
    assert ", single models trained on a part of the classes and tested on others." in about["note"]
    assert (tmp_path / "all" / "NOTE.txt").read_text().startswith(about["note"] + "\n")
    said = " ".join(answer.out.split())
    assert UNTESTED in said
    assert "trained on all 16 classes (96 rows) for " in said
    assert "test" not in about
    search = best_search(store, find_experiment(store, "mine"), "proxy_anchor")
    runs = [find_runs(store, "mine", "proxy_anchor", search + 1, run)[0] for run in (1, 2)]
    kept = [result.best_iteration // 4 for run in runs for result in run.trainings.values()]
    assert sorted(about["epochs_are_the_mean_of"]) == sorted(kept)
    assert about["epochs"] == round(sum(kept) / 8)
    assert about["hyperparameters"] == runs[0].record.hyperparameters
    given = say("fit", "mine", "--method", "all_discriminants", "--device", "cpu", "--to", tmp_path / "given").done()
    assert "computed from all 16 classes (96 rows); nothing is trained" in " ".join(given.out.split())
    say("fit", "mine", *ROOM, "--to", tmp_path / "again").done()
    first, second = (torch.load(tmp_path / name / "model.pt", weights_only=True) for name in ("all", "again"))
    assert all(torch.equal(first[key], second[key]) for key in first.keys() | second.keys())


def test_the_setting_is_that_of_the_search_with_the_best_validation_score(finished, say, tmp_path):
    store = store_of(finished)
    fingerprint = store.latest_experiments()["mine"]
    scores = {
        search: max(trial.score for trial in study.trials)
        for (_, search), study in store.searches.of_experiment(fingerprint).items()
    }
    assert len(scores) == 2
    best = best_search(store, find_experiment(store, "mine"), "proxy_anchor")
    assert scores[best] == max(scores.values())
    assert say("export", "model", "mine", "--method", "proxy_anchor", "--to", tmp_path / "fold").code == 0
    assert json.loads((tmp_path / "fold" / "model.json").read_text())["search"] == best + 1
    other = min(scores, key=scores.get) + 1
    assert say("fit", "mine", *ROOM, "--search", other, "--to", tmp_path / "other").code == 0
    about = json.loads((tmp_path / "other" / "model.json").read_text())
    assert about["hyperparameters"] == find_runs(store, "mine", "proxy_anchor", other, 1)[0].record.hyperparameters


def test_the_training_gets_every_class_and_no_test_takes_its_model(finished, say, tmp_path, monkeypatch):
    seen = []

    def spied(spec, data, **options):
        seen.append((spec, set(data.train.labels.tolist()), len(data.validation.labels)))
        return train_fold(spec, data, **options)

    train_fold = fitting.train_fold
    monkeypatch.setattr(fitting, "train_fold", spied)
    assert say("fit", "mine", *ROOM, "--to", tmp_path / "all").code == 0
    ((spec, classes, validation),) = seen
    assert (classes, validation) == (set(range(16)), 0)
    stored = find_runs(store_of(finished), "mine", "proxy_anchor", 1, 1)[0].trainings[0].spec
    assert stored.train_classes != spec.train_classes
    dataset = open_dataset(DataRequest(DataChoice(name="features", root=finished / "rows"), ImageSettings(), tmp_path))
    tested = data_for_testing(dataset, named_split("mlrc", 16, None))
    tested.check_unseen(stored)
    with pytest.raises(SplitError):
        tested.check_unseen(spec)
    sizes = stored.conditions.embedding_size, spec.conditions.embedding_size
    assert (stored.conditions.trunk, sizes[0]) == (spec.conditions.trunk, sizes[1])


def test_what_the_experiment_left_out_of_the_data_is_told(say, tmp_path, monkeypatch):
    whole = OpenedData.of_training

    def without_one(*arguments):
        return replace(whole(*arguments), left_out=("1 row of zeros (row 3)",))

    monkeypatch.setattr(OpenedData, "of_training", without_one)
    answer = say("fit", "mine", *ROOM, "--to", tmp_path / "all").done()
    assert "trained on all 16 classes (96 rows; left out: 1 row of zeros (row 3)) for " in " ".join(answer.out.split())


def test_the_table_says_that_the_data_are_features(say):
    assert "features and no images" in " ".join(say("table", "mine").out.split())


def test_an_ensemble_and_a_fitted_model_of_features_run_without_the_suite(finished, say, tmp_path):
    rows = torch.from_numpy(np.load(finished / "rows" / "features.npy"))
    chosen = ("--method", "proxy_anchor", "--to")
    assert say("export", "model", "mine", *chosen, tmp_path / "four").code == 0
    assert say("export", "embeddings", "mine", *chosen, tmp_path / "e", "--data", "rows", "--device", "cpu").code == 0
    four = torch.export.load(tmp_path / "four" / "model.pt2").module()(rows[48:])
    assert four.shape == (48, 16)
    np.testing.assert_allclose(four.numpy(), np.load(tmp_path / "e" / "features.npy"), atol=1e-6)
    assert say("fit", "mine", *ROOM, "--to", tmp_path / "all").code == 0
    one = torch.export.load(tmp_path / "all" / "model.pt2").module()(rows)
    assert one.shape == (96, 4)
    half = torch.export.load(tmp_path / "all" / "model.pt2").module()(rows.half())
    torch.testing.assert_close(half, one, atol=1e-2, rtol=0)
    state = torch.load(tmp_path / "all" / "model.pt", weights_only=True)
    expected = torch.nn.functional.normalize(rows @ state["embedder.weight"].T + state["embedder.bias"])
    torch.testing.assert_close(one, expected)
    assert say("fit", "mine", *ROOM, "--method", "untrained", "--to", tmp_path / "none").code == 0
    none = torch.export.load(tmp_path / "none" / "model.pt2").module()(rows)
    torch.testing.assert_close(none, torch.nn.functional.normalize(rows))


def test_epochs_are_counted_in_passes_where_an_epoch_is_a_pass(tmp_path):
    dataset = open_dataset(DataRequest(DataChoice(name="glyphs"), ImageSettings(resize=None, crop=32), tmp_path))
    settings = some_spec().conditions.training.model_copy(update={"iterations_per_epoch": None, "batch_size": 10})
    spec = some_spec(train_classes=((0, 9),), training=settings)
    steps = len(dataset.images.of_classes(tuple(range(10))).labels) // 10
    trainings = [some_result(spec, best_iteration=epochs * steps) for epochs in (2, 4, 5)]
    trainings.append(some_result(spec, stopped_by="nan"))
    assert checkpoint_epochs(trainings, dataset) == [2, 4, 5]


def test_a_network_that_torch_cannot_export_is_refused_before_it_is_trained(finished, say, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("data-dependent\nmore")

    monkeypatch.setattr(torch.export, "export", refuse)
    monkeypatch.setattr("reproduce.outputs.export_models.fit", lambda *_, **__: pytest.fail("trained"))
    answer = say("fit", "mine", *ROOM, "--to", str(tmp_path / "model"))
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "torch cannot export this model for any number of inputs (data-dependent)" in answer.err
