"""Trainings on features: the same protocol as on images, without a trunk and without crops."""

import numpy as np
import pytest
import torch
from torch import nn

from protocols.evaluation.test_data import test_data as data_of_test
from protocols.splits import SplitError
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import trained_model
from results.spec.conditions import OptimizerSettings
from results.spec.training_spec import MethodSpec
from results.spec.trunk_spec import EmbedderSpec
from tests.support.feature_files import WIDTH, feature_problem, some_features
from tests.support.small_problem import COSFACE, TRIPLET, UNTRAINED

PCA_ROW = MethodSpec(name="pretrained_pca", loss=None, embedder="principal_components")


def trained(problem, method):
    spec = problem.fold_specs(method, "search", 0)[0]
    return spec, train_fold(spec, problem.training_data(spec))


@pytest.mark.parametrize("method", [TRIPLET, COSFACE], ids=lambda method: method.name)
def test_only_the_embedder_trains(tmp_path, method):
    problem = feature_problem(tmp_path)
    _, fold = trained(problem, method)
    assert fold.result.status == "ok"
    assert fold.result.iterations == 6
    assert {key: tuple(value.shape) for key, value in fold.weights.items()} == {
        "embedder.weight": (8, WIDTH),
        "embedder.bias": (8,),
    }
    assert trained(problem, method)[1].result.curve == fold.result.curve


def test_the_raw_features_are_a_row_without_weights(tmp_path):
    problem = feature_problem(tmp_path)
    spec, fold = trained(problem, UNTRAINED)
    assert fold.weights == {}
    rows = torch.from_numpy(some_features()[:3])
    assert torch.equal(trained_model(spec, {}, torch.device("cpu"))(rows), rows)


@pytest.mark.parametrize("method", [TRIPLET, COSFACE], ids=lambda method: method.name)
def test_a_start_at_principal_components_has_the_score_of_their_row(tmp_path, method):
    _, row = trained(feature_problem(tmp_path), PCA_ROW)
    _, started = trained(feature_problem(tmp_path, embedder=EmbedderSpec(init="pca")), method)
    _, random = trained(feature_problem(tmp_path), method)
    assert started.result.curve[0].map_at_r == row.result.curve[0].map_at_r
    assert started.result.untrained_map_at_r != random.result.untrained_map_at_r


def test_a_start_at_principal_components_is_trained_further(tmp_path):
    problem = feature_problem(tmp_path, embedder=EmbedderSpec(init="pca"))
    _, row = trained(problem, PCA_ROW)
    _, fold = trained(problem, TRIPLET)
    difference = (fold.weights["embedder.weight"] - row.weights["embedder.weight"]).abs().max()
    assert 0 < difference < 0.1


def test_hidden_layers_train(tmp_path):
    problem = feature_problem(tmp_path, embedder=EmbedderSpec(hidden=(20, 10)))
    spec, fold = trained(problem, TRIPLET)
    model = trained_model(spec, fold.weights, torch.device("cpu"))
    assert [type(layer) for layer in model.embedder] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert [tuple(layer.weight.shape) for layer in model.embedder if isinstance(layer, nn.Linear)] == [
        (20, WIDTH),
        (10, 20),
        (8, 10),
    ]
    assert problem.fold_specs(UNTRAINED, "search", 0)[0].embedder == EmbedderSpec(), "rows without loss have none"


def test_a_training_cannot_reach_the_rows_of_test_classes(tmp_path):
    problem = feature_problem(tmp_path)
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    data = problem.training_data(spec)
    tested = data_of_test(problem.dataset, problem.split)
    assert not set(tested.images.rows) & {*data.train.rows, *data.validation.rows}
    leaking = spec.model_copy(update={"train_classes": ((0, 15),)})
    with pytest.raises(SplitError, match="test class"):
        problem.training_data(leaking)


def test_the_learning_rate_is_that_of_the_embedder(tmp_path):
    settings = feature_problem(tmp_path).conditions.training
    still = settings.model_copy(update={"optimizer": OptimizerSettings(name="SGD", lr=0.0, arguments={})})
    _, fold = trained(feature_problem(tmp_path, training=still), TRIPLET)
    scores = [point.map_at_r for point in fold.result.curve]
    assert np.allclose(scores, scores[0])
