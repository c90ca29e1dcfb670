"""The embedder of the pretrained trunk: principal components of the features of a fold's training images."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pytorch_metric_learning.testers import GlobalEmbeddingSpaceTester
from torch import Tensor, nn

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import mlrc_split
from protocols.evaluation.evaluate_run import embed_test
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.images.batch_source import EvaluationCrops
from protocols.setup import Setup
from protocols.training.principal_components import set_to_principal_components
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import embed_crops, trained_model
from results.spec.trunk_spec import TrunkSpec
from tests.support.small_setup import with_changes
from tests.support.toys import (
    IMAGES,
    PRETRAINED_PCA,
    TEST_COMPONENTS,
    conditions,
    same_weights,
    toy_fold,
)

CPU = torch.device("cpu")


@pytest.fixture
def setup(dataset: Dataset) -> Setup:
    trunk = TrunkSpec(name="small_conv", weights="random")
    return Setup(dataset, mlrc_split(16), 4, conditions(trunk), seed=5)


def some_features(images: int = 60, width: int = 12) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    spread = torch.linspace(3, 0.5, width)
    return torch.randn(images, width, generator=generator) * spread @ torch.randn(width, width, generator=generator) + 5


def with_components(features: Tensor, dimensions: int) -> nn.Linear:
    embedder = nn.Linear(features.shape[1], dimensions)
    set_to_principal_components(embedder, features)
    return embedder


def leading_directions(features: Tensor, dimensions: int) -> NDArray[np.float64]:
    """Right singular vectors (d, c) of the centred features, with our sign."""
    values = features.double().numpy()
    _, _, rows = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    rows = rows[:dimensions]
    largest = np.abs(rows).argmax(axis=1)
    signed: NDArray[np.float64] = rows * np.sign(rows[np.arange(dimensions), largest])[:, None]
    return signed


def test_components_are_the_leading_singular_vectors_of_the_centred_features() -> None:
    features = some_features()
    embedder = with_components(features, 5)
    expected = leading_directions(features, 5)
    np.testing.assert_allclose(embedder.weight.detach().numpy(), expected, atol=1e-6)
    projected = (features.double().numpy() - features.double().numpy().mean(axis=0)) @ expected.T
    np.testing.assert_allclose(embedder(features).detach().numpy(), projected, atol=1e-4)


def test_a_fold_without_training_gets_the_components_of_its_training_images(dataset: Dataset, setup: Setup) -> None:
    spec, data = toy_fold(dataset, PRETRAINED_PCA)
    trained = train_fold(spec, data)
    model = trained_model(spec, trained.weights, CPU)
    features = embed_crops(model, EvaluationCrops(data.train, spec.conditions.images, CPU), trunk_only=True)
    expected = leading_directions(features, 8)
    np.testing.assert_allclose(trained.weights["embedder.weight"].numpy(), expected, atol=1e-5)
    assert trained.result.stopped_by == "untrained"
    assert (trained.result.iterations, len(trained.result.curve)) == (0, 1)
    assert trained.result.best_map_at_r == trained.result.curve[0].map_at_r
    settled = spec.changed(validation_classes=(), checkpoint_epoch=1)
    assert same_weights(train_fold(settled, setup.training_data(settled)).weights, trained.weights)


def test_components_of_the_test_images_are_those_of_pmls_tester(setup: Setup) -> None:
    setup = with_changes(setup, embedding_size=6)
    specs = setup.fold_specs(TEST_COMPONENTS, "reproduction", 0)
    data = data_for_testing(setup.dataset, setup.split)
    weights = [train_fold(spec, setup.training_data(spec)).weights for spec in specs]
    embedded = embed_test(specs, weights, data, CPU)
    crops = EvaluationCrops(data.images, IMAGES, CPU)
    raw = [embed_crops(trained_model(spec, w, CPU), crops) for spec, w in zip(specs, weights, strict=True)]
    for ours, features, size in [
        *((model, features, 6) for model, features in zip(embedded.by_model, raw, strict=True)),
        (embedded.concatenated, torch.cat(raw, 1), 24),
    ]:
        assert ours.shape == (32, size)
        # The library divides by a deviation of zero where a feature is constant.
        varying = features[:, features.std(0) > 0]
        theirs = GlobalEmbeddingSpaceTester(pca=size).maybe_normalize(varying)
        # A component has no sign of its own.
        assert torch.allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-3)
