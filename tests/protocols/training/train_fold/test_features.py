"""Trainings on features: the same protocol as on images, without a trunk and without crops."""

import numpy as np
import pytest

from protocols.datasets.splits import SplitError
from protocols.evaluation.evaluate_run import test_data as data_of_test
from protocols.training.train_fold import train_fold
from results.spec.conditions import OptimizerSettings
from results.spec.method import Method
from results.spec.trunk_spec import EmbedderSpec
from tests.support.feature_files import WIDTH, feature_setup
from tests.support.small_setup import COSFACE, TRIPLET

PCA_ROW = Method(name="pretrained_pca", loss=None, embedder="principal_components")


def trained(setup, method):
    spec = setup.fold_specs(method, "search", 0)[0]
    return spec, train_fold(spec, setup.training_data(spec))


@pytest.mark.parametrize("method", [TRIPLET, COSFACE], ids=lambda method: method.name)
def test_only_the_embedder_trains(tmp_path, method):
    setup = feature_setup(tmp_path)
    _, fold = trained(setup, method)
    assert fold.result.status == "ok"
    assert fold.result.iterations == 6
    assert {key: tuple(value.shape) for key, value in fold.weights.items()} == {
        "embedder.weight": (8, WIDTH),
        "embedder.bias": (8,),
    }
    assert trained(setup, method)[1].result.curve == fold.result.curve


@pytest.mark.parametrize("method", [TRIPLET, COSFACE], ids=lambda method: method.name)
def test_a_start_at_principal_components_has_the_score_of_their_row(tmp_path, method):
    _, row = trained(feature_setup(tmp_path), PCA_ROW)
    _, started = trained(feature_setup(tmp_path, embedder=EmbedderSpec(init="pca")), method)
    _, random = trained(feature_setup(tmp_path), method)
    assert started.result.curve[0].map_at_r == row.result.curve[0].map_at_r
    assert started.result.untrained_map_at_r != random.result.untrained_map_at_r


def test_a_training_cannot_reach_the_rows_of_test_classes(tmp_path):
    setup = feature_setup(tmp_path)
    spec = setup.fold_specs(TRIPLET, "search", 0)[0]
    data = setup.training_data(spec)
    tested = data_of_test(setup.dataset, setup.split)
    assert not set(tested.images.rows) & {*data.train.rows, *data.validation.rows}
    leaking = spec.model_copy(update={"train_classes": ((0, 15),)})
    with pytest.raises(SplitError, match="test class"):
        setup.training_data(leaking)


def test_the_learning_rate_is_that_of_the_embedder(tmp_path):
    settings = feature_setup(tmp_path).conditions.training
    still = settings.model_copy(update={"optimizer": OptimizerSettings(name="SGD", lr=0.0, arguments={})})
    _, fold = trained(feature_setup(tmp_path, training=still), TRIPLET)
    scores = [point.map_at_r for point in fold.result.curve]
    assert np.allclose(scores, scores[0])
