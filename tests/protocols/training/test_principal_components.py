"""The embedder of the pretrained trunk: principal components of the features of a fold's training images."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pytorch_metric_learning.testers import GlobalEmbeddingSpaceTester
from torch import Tensor, nn

from protocols.datasets.dataset import Dataset, from_packing
from protocols.evaluation.evaluate_run import embed_test
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.images.batch_source import EvaluationCrops
from protocols.images.packing import pack_arrays
from protocols.problem import Problem
from protocols.splits import mlrc_split
from protocols.training.build_method import MethodError
from protocols.training.principal_components import set_to_principal_components
from protocols.training.train_fold import train_fold
from protocols.trunks.embed import embed_crops, features_of_crops
from protocols.trunks.embedding_model import trained_model
from reproduce.errors import InputError
from reproduce.execution.check_settings import check_components
from results.spec.trunk_spec import TrunkSpec
from tests.support.small_problem import with_changes
from tests.support.toys import (
    CONTRASTIVE,
    IMAGES,
    PRETRAINED_PCA,
    TEST_COMPONENTS,
    UNTRAINED,
    conditions,
    pattern_dataset,
    patterns,
    same_weights,
    toy_fold,
)

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return pattern_dataset(tmp_path_factory.mktemp("data"))


@pytest.fixture
def problem(dataset: Dataset) -> Problem:
    trunk = TrunkSpec(name="small_conv", weights="random")
    return Problem(dataset, mlrc_split(16), 4, conditions(trunk), seed=5)


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


def test_embeddings_are_centred_uncorrelated_and_sorted_by_variance() -> None:
    embeddings = with_components(features := some_features(), 5)(features).detach().double()
    covariance = torch.cov(embeddings.T)
    assert embeddings.mean(0).abs().max() < 1e-5
    assert (covariance - covariance.diag().diag()).abs().max() < 1e-4
    assert covariance.diag().tolist() == sorted(covariance.diag().tolist(), reverse=True)


def test_too_few_images_or_features_are_one_clear_line() -> None:
    with pytest.raises(MethodError, match=r"^5 training images with 12 features have fewer than 5 principal") as error:
        with_components(some_features()[:5], 5)
    assert "\n" not in str(error.value)
    with_components(some_features()[:6], 5)
    with pytest.raises(MethodError, match="60 training images with 12 features have fewer than 13"):
        with_components(some_features(), 13)


def test_a_fold_without_training_gets_the_components_of_its_training_images(dataset: Dataset) -> None:
    spec, data = toy_fold(dataset, PRETRAINED_PCA)
    trained = train_fold(spec, data)
    model = trained_model(spec, trained.weights, CPU)
    features = features_of_crops(model, EvaluationCrops(data.train, spec.conditions.images, CPU))
    expected = leading_directions(features, 8)
    np.testing.assert_allclose(trained.weights["embedder.weight"].numpy(), expected, atol=1e-5)
    assert trained.result.stopped_by == "untrained"
    assert (trained.result.iterations, len(trained.result.curve)) == (0, 1)
    assert trained.result.best_map_at_r == trained.result.curve[0].map_at_r


def test_the_trunk_stays_as_it_is(dataset: Dataset) -> None:
    reduced = train_fold(*toy_fold(dataset, PRETRAINED_PCA)).weights
    whole = train_fold(*toy_fold(dataset, UNTRAINED, embedding_size=None)).weights
    assert same_weights({key: value for key, value in reduced.items() if "embedder" not in key}, whole)


def test_equal_folds_give_equal_bits(dataset: Dataset) -> None:
    assert same_weights(
        train_fold(*toy_fold(dataset, PRETRAINED_PCA)).weights, train_fold(*toy_fold(dataset, PRETRAINED_PCA)).weights
    )


def test_no_image_of_another_class_enters(dataset: Dataset, tmp_path: Path) -> None:
    spec, data = toy_fold(dataset, PRETRAINED_PCA)
    images = patterns(16, 4, 8)
    images[~np.isin(dataset.images.labels, data.train.labels)] = 0
    packing = pack_arrays(images, tmp_path / "black")
    names = [str(row) for row in range(len(images))]
    black = from_packing("patterns", dataset.class_names, names, dataset.images.labels, packing)
    same_spec, black_data = toy_fold(black, PRETRAINED_PCA, data_fingerprint=spec.data_fingerprint)
    assert same_spec == spec
    assert not black_data.validation.image(0).any(), "validation images are black, and so are test images"
    assert same_weights(train_fold(spec, data).weights, train_fold(spec, black_data).weights)


def test_folds_have_different_components_and_join_to_a_wider_embedding(problem: Problem) -> None:
    specs = problem.fold_specs(PRETRAINED_PCA, "reproduction", 0)
    assert {(spec.embedding_size, spec.embedder_bias) for spec in specs} == {(8, True)}
    weights = [train_fold(spec, problem.training_data(spec)).weights for spec in specs]
    embedded = embed_test(specs, weights, data_for_testing(problem.dataset, problem.split), CPU)
    assert [tuple(model.shape) for model in embedded.by_model] == [(32, 8)] * 4
    assert tuple(embedded.joint.shape) == (32, 32)
    assert all(torch.allclose(model.norm(dim=1), torch.ones(32)) for model in embedded.by_model)


def test_components_of_the_test_images_are_those_of_pmls_tester(problem: Problem) -> None:
    problem = with_changes(problem, embedding_size=6)
    specs = problem.fold_specs(TEST_COMPONENTS, "reproduction", 0)
    data = data_for_testing(problem.dataset, problem.split)
    weights = [train_fold(spec, problem.training_data(spec)).weights for spec in specs]
    embedded = embed_test(specs, weights, data, CPU)
    crops = EvaluationCrops(data.images, IMAGES, CPU)
    raw = [embed_crops(trained_model(spec, w, CPU), crops) for spec, w in zip(specs, weights, strict=True)]
    for ours, features, size in [
        *((model, features, 6) for model, features in zip(embedded.by_model, raw, strict=True)),
        (embedded.joint, torch.cat(raw, 1), 24),
    ]:
        assert ours.shape == (32, size)
        # The library divides by a deviation of zero where a feature is constant.
        varying = features[:, features.std(0) > 0]
        theirs = GlobalEmbeddingSpaceTester(pca=size).maybe_normalize(varying)
        # A component has no sign of its own.
        assert torch.allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-3)


def test_too_few_test_images_for_their_components_are_refused_before_any_training(problem: Problem) -> None:
    check_components(with_changes(problem, embedding_size=7), TEST_COMPONENTS)
    with pytest.raises(InputError, match="32 test images have at most 31 principal components, fewer than the 32"):
        check_components(problem, TEST_COMPONENTS)


def test_the_specification_has_the_embedder_and_other_methods_keep_theirs(problem: Problem) -> None:
    assert (
        problem.fold_specs(PRETRAINED_PCA, "reproduction", 0)[0].method.model_dump()["embedder"]
        == "principal_components"
    )
    assert problem.fold_specs(CONTRASTIVE, "reproduction", 0)[0].method.embedder is None
    without_bias = with_changes(problem, embedder_bias=False)
    assert {spec.embedder_bias for spec in without_bias.fold_specs(PRETRAINED_PCA, "reproduction", 0)} == {True}
    assert {spec.embedder_bias for spec in without_bias.fold_specs(CONTRASTIVE, "reproduction", 0)} == {False}


def test_the_final_model_of_protocol_standard_has_its_components(problem: Problem) -> None:
    spec = problem.final_spec(PRETRAINED_PCA, 0, 0)
    trained = train_fold(spec, problem.training_data(spec))
    assert trained.result.best_map_at_r is None
    model = trained_model(spec, trained.weights, CPU)
    features = features_of_crops(model, EvaluationCrops(problem.training_data(spec).train, spec.conditions.images, CPU))
    np.testing.assert_allclose(trained.weights["embedder.weight"].numpy(), leading_directions(features, 8), atol=1e-5)
