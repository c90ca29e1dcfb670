"""Test curves: the scores that an evaluation would give, and a training that does not notice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import mlrc_split
from protocols.evaluation.evaluate_run import CurveRecorder, evaluate_run
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.jobs import EvaluateJob
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from results.records.records import TestCurve as Curve
from results.spec.training_spec import MethodSpec
from tests.support.toys import CONTRASTIVE, PROXIES, UNTRAINED, pattern_dataset, same_weights, settings, toy_fold


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return pattern_dataset(tmp_path, per_class=6)


@pytest.mark.parametrize("method", [CONTRASTIVE, PROXIES, UNTRAINED], ids=lambda method: method.name)
def test_a_training_does_not_notice_its_recorder(dataset: Dataset, method: MethodSpec) -> None:
    spec, data = toy_fold(dataset, method, settings())
    recorder = CurveRecorder(spec, data_for_testing(dataset, mlrc_split(dataset.n_classes)))
    plain, recorded = train_fold(spec, data), train_fold(spec, data, observe=recorder)
    assert same_weights(plain.weights, recorded.weights)
    assert plain.result.curve == recorded.result.curve
    assert plain.result.best_map_at_r == recorded.result.best_map_at_r
    curve = recorder.curve()
    assert curve.fingerprint == spec.fingerprint
    assert [point.iteration for point in curve.points] == [point.iteration for point in plain.result.curve]
    assert Curve.model_validate_json(curve.model_dump_json()) == curve


def test_the_point_of_the_checkpoint_is_the_evaluations_score(dataset: Dataset) -> None:
    spec, data = toy_fold(dataset, CONTRASTIVE, settings())
    tests = data_for_testing(dataset, mlrc_split(dataset.n_classes))
    is_query = np.arange(len(tests.images)) % 2 == 0
    for tested in (tests, replace(tests, is_query=is_query)):
        recorder = CurveRecorder(spec, tested)
        trained = train_fold(spec, data, observe=recorder)
        job = EvaluateJob((trained.result,), "mlrc", {}, 0, 1)
        record = evaluate_run(job, [trained.weights], tested)
        point = next(p for p in recorder.curve().points if p.iteration == trained.result.best_iteration)
        assert point.scores == record.separated
        assert len({p.scores.map_at_r for p in recorder.curve().points}) > 1


def test_a_diverged_model_leaves_no_point(dataset: Dataset) -> None:
    spec, _ = toy_fold(dataset)
    recorder = CurveRecorder(spec, data_for_testing(dataset, mlrc_split(dataset.n_classes)))
    model = EmbeddingModel(spec.conditions.trunk, spec.conditions.embedding_size)
    recorder(model, 0)
    with torch.no_grad():
        next(iter(model.parameters())).fill_(torch.nan)
    recorder(model, 2)
    assert [point.iteration for point in recorder.curve().points] == [0]
