"""`evaluate`: an exported model, a trunk or features on data that is only for the test."""

import re

import numpy as np
import pytest
import torch

from protocols.evaluation.test_data import TestData
from reproduce.outputs.evaluate import scores
from reproduce.outputs.find_runs import find_runs
from results.answer.intervals import t_quantile
from results.store.store import Store
from tests.support.command_line import refused
from tests.support.feature_files import opened_features, some_features, write_features


def score(answer, metric):
    assert (answer.code, answer.err) == (0, ""), answer.err
    return float(re.search(rf"{metric} +│ +([\d.]+)", answer.out)[1])


def test_an_exported_model_has_its_score_on_the_classes_of_its_test(say, tiny_run, tmp_path):
    store = Store(tiny_run / "runs" / "store.sqlite", tiny_run / "runs" / "artifacts")
    record = find_runs(store, "tiny", "contrastive")[0].record
    export = ("export", "model", "tiny", "--method", "contrastive", "--store", tiny_run / "runs" / "store.sqlite")
    assert say(*export, "--fold", 1, "--to", "one").code == 0
    assert say(*export, "--to", "all").code == 0
    ask_for = ("evaluate", "folder", "--data", tiny_run / "images", "--device", "cpu", "--cache", tmp_path / "cache")
    for model, expected in (("one", record.fold_scores[1]), ("all", record.concatenated)):
        tested = say(*ask_for, "--model", model, "--split", "mlrc")
        assert score(tested, "map_at_r") == pytest.approx(100 * expected.map_at_r, abs=0.006)
        assert score(tested, "precision_at_1") == pytest.approx(100 * expected.precision_at_1, abs=0.006)
        assert "32 samples of 8 classes" in tested.out
        assert "too high" not in tested.out
    seen = say(*ask_for, "--model", "one")
    assert "64 samples of 16 classes" in seen.out
    assert "trained or chosen on some of these classes, so the scores are too high" in seen.out
    for wrong, said in (
        ((), "give either --model or --trunk"),
        (("--model", tiny_run), "holds no model; give"),
    ):
        refused(say(*ask_for, *wrong), said)


def test_features_are_scored_as_they_are_with_intervals_over_classes(say, tmp_path):
    # Classes of different sizes.
    labels = np.repeat(np.arange(16), [3 + number % 3 for number in range(16)])
    folder = write_features(tmp_path / "rows", some_features(per_class=5)[: len(labels)], labels)
    answer = say("evaluate", "features", "--data", folder, "--cache", tmp_path / "cache")
    data = TestData(opened_features(folder, tmp_path / "cache").images)
    rows = torch.nn.functional.normalize(torch.from_numpy(np.load(folder / "features.npy")))
    found = scores(rows, data)
    hits = (rows @ rows.T).fill_diagonal_(-2).argmax(1)
    right = (labels[hits.numpy()] == labels).astype(float)
    assert score(answer, "precision_at_1") == pytest.approx(100 * right.mean(), abs=0.006)
    assert found["precision_at_1"].mean == pytest.approx(right.mean(), abs=1e-12)
    sums = np.bincount(labels, right - right.mean())
    error = np.sqrt((sums**2).sum() * 16 / 15) / len(labels)
    assert found["precision_at_1"].half_width == pytest.approx(t_quantile(0.975, 15) * error, rel=1e-9)
