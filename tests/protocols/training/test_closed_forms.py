"""The embedder of the pretrained trunk: principal components of the features of a fold's training images."""

import numpy as np
import pytest
import torch
from scipy.linalg import fractional_matrix_power
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import nn

from protocols.evaluation.evaluate_run import embed_test
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.images.samples import EvaluationCrops
from protocols.training.build_method import RefusedError
from protocols.training.closed_forms import most_dimensions, set_to_closed_form
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import embed_crops, embedding_size_of, in_parts, model_of, trained_model
from results.spec.method import Method
from results.spec.trunk_spec import EmbedderSpec
from tests.support.sample_records import some_spec
from tests.support.small_setup import with_changes
from tests.support.toys import IMAGES, PRETRAINED_PCA, TEST_COMPONENTS, same_weights, toy_fold

CPU = torch.device("cpu")


def some_features(images=60, width=12):
    generator = torch.Generator().manual_seed(0)
    spread = torch.linspace(3, 0.5, width)
    return torch.randn(images, width, generator=generator) * spread @ torch.randn(width, width, generator=generator) + 5


def some_classes(images):
    """Six classes, the first with the fewest images."""
    return (6 * np.sqrt(np.arange(images) / images)).astype(np.int64)


def spec_with(embedder):
    method = Method(name="some", loss=None, embedder=embedder)
    return some_spec().changed(method=method, train_classes=((0, 5),))


def in_closed_form(embedder, features, size):
    layer = nn.Linear(features.shape[1], size)
    set_to_closed_form(layer, spec_with(embedder), features.split(7), some_classes(len(features)))
    return layer


def leading_directions(features, dimensions):
    """Right singular vectors (d, c) of the centred features, with our sign."""
    values = features.double().numpy()
    return signed(np.linalg.svd(values - values.mean(axis=0), full_matrices=False)[2][:dimensions])


def signed(rows):
    return np.stack([row * np.sign(row[np.abs(row).argmax()]) for row in rows])


def reference(embedder, features, size):
    """The weights of a closed form, class by class and by singular values, without generalised eigenvectors."""
    centred, s = features - features.mean(axis=0), embedder.shrinkage
    if s is None or embedder.init == "whitened_pca":
        _, singular, rows = np.linalg.svd(centred, full_matrices=False)
        variances = singular**2 / (len(features) - 1)
        deviations = 1 if s is None else np.sqrt((1 - s) * variances + s * variances.sum() / features.shape[1])
        return (rows / np.broadcast_to(deviations, len(rows))[:, None])[:size]
    groups = [features[some_classes(len(features)) == one] for one in range(6)]
    within = sum(len(group) / len(features) * np.cov(group.T, bias=True) for group in groups)
    shrunk = (1 - s) * within + s * np.trace(within) / len(within) * np.eye(len(within))
    whitening = fractional_matrix_power(shrunk, -0.5)
    means = np.stack([group.mean(axis=0) for group in groups]) - features.mean(axis=0)
    spread = np.sqrt([[len(group)] for group in groups]) * means if embedder.init == "lda" else centred
    return np.linalg.svd(spread @ whitening, full_matrices=False)[2][:size] @ whitening


@pytest.mark.parametrize("init", ["pca", "whitened_pca", "within_class_whitening", "lda"])
@pytest.mark.parametrize(("shrinkage", "images"), [(0.0, 60), (0.3, 60), (0.3, 24), (1.0, 60)])
def test_closed_forms_have_the_values_of_their_definitions(init, shrinkage, images):
    """More images than features and fewer, which shrinkage makes up for."""
    embedder = EmbedderSpec(init=init, shrinkage=None if init == "pca" else shrinkage)
    features = some_features(images, 36 if images < 36 else 12)
    layer = in_closed_form(embedder, features, 5)
    values = features.double().numpy()
    expected = signed(reference(embedder, values, 5))
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected, atol=2e-6 * np.abs(expected).max())
    projected = (values - values.mean(axis=0)) @ expected.T
    np.testing.assert_allclose(layer(features).detach().numpy(), projected, atol=1e-4 * np.abs(projected).max())


@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
def test_discriminants_are_those_of_scikit_learn(shrinkage):
    """It shrinks the covariance of all images too, so that without shrinkage alone its directions are the same."""
    features = some_features()
    layer = in_closed_form(EmbedderSpec(init="lda", shrinkage=shrinkage), features, 5)
    rows = layer.weight.detach().double().numpy()
    theirs = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage or None)
    theirs.fit(features.double().numpy(), some_classes(len(features)))
    np.testing.assert_allclose(rows @ theirs.covariance_ @ rows.T, np.eye(5), atol=1e-4)
    if not shrinkage:
        np.testing.assert_allclose(rows, signed(theirs.scalings_[:, :5].T), atol=1e-5)


@pytest.mark.parametrize(
    ("embedder", "images", "width", "most"),
    [
        (EmbedderSpec(init="lda"), 60, 12, (5, "only 6 training classes, so at most 5 discriminants")),
        (EmbedderSpec(init="pca"), 8, 12, (7, "only 8 training images, which have at most 7 principal components")),
        (EmbedderSpec(init="whitened_pca"), 60, 12, (12, "there are only 12 features")),
        (EmbedderSpec(init="within_class_whitening"), 8, 16, (16, "there are only 16 features")),
    ],
)
def test_images_classes_and_features_limit_the_dimensions(embedder, images, width, most):
    """A shrunk covariance keeps all dimensions of few images if as many are asked for."""
    size, said = most_dimensions(spec_with(embedder), images, width)
    assert (size, most[1] in said) == (most[0], True)


@pytest.mark.parametrize(
    ("embedder", "asked", "size"),
    [
        ("principal_components", 16, 16),
        ("principal_components", None, 128),
        (None, 16, 128),
        (EmbedderSpec(init="lda"), 16, 5),
    ],
)
def test_a_model_has_the_size_that_is_asked_or_that_of_the_features(embedder, asked, size):
    """There are no more discriminants than classes but one."""
    model = model_of(spec_with(embedder).with_conditions(embedding_size=asked))
    assert (model.dimensions, embedding_size_of(spec_with(embedder).with_conditions(embedding_size=asked))) == (
        size,
        size,
    )


def _flat(columns):
    """60 images that have variance in a part of their features only, to the rounding of float32."""
    generator = torch.Generator().manual_seed(1)
    varying = torch.randn(60, columns, generator=generator)
    mixed = varying @ torch.randn(columns, 10, generator=generator) + 3
    return {
        "a lower rank": mixed,
        "duplicated": torch.cat([varying, varying], 1),
        "a constant": torch.cat([varying, torch.ones(60, 1)], 1),
    }


@pytest.mark.parametrize("flat", ["a lower rank", "duplicated", "a constant"])
@pytest.mark.parametrize("init", ["whitened_pca", "within_class_whitening", "lda"])
def test_directions_without_variance_are_not_whitened(init, flat):
    """A little shrinkage gives all of them embeddings of the size of 1; without any the directions are noise."""
    features = _flat(4)[flat]
    with pytest.raises(RefusedError, match=r"has no inverse; set a larger embedder\.shrinkage"):
        in_closed_form(EmbedderSpec(init=init, shrinkage=0.0), features, 5)
    embedded = in_closed_form(EmbedderSpec(init=init, shrinkage=0.02), features, 5)(features)
    assert embedded.std(0).max() < 10
    if init == "whitened_pca":  # The directions that have variance can be whitened.
        four = in_closed_form(EmbedderSpec(init=init, shrinkage=0.0), features, 4)(features)
        np.testing.assert_allclose(np.cov(four.detach().numpy().T), np.eye(4), atol=1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_small_variance_beside_large_is_whitened(scale):
    """The smallest deviation is 1e-5 of the length of the features, which float32 still resolves."""
    features = scale * torch.randn(60, 3, generator=torch.Generator().manual_seed(2)) * torch.tensor([1.0, 1e-2, 1e-5])
    embedded = in_closed_form(EmbedderSpec(init="whitened_pca", shrinkage=0.0), features, 3)(features)
    np.testing.assert_allclose(np.cov(embedded.detach().numpy().T), np.eye(3), atol=0.01)


@pytest.mark.parametrize("shrinkage", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("init", ["whitened_pca", "within_class_whitening", "lda"])
def test_no_shrinkage_helps_a_covariance_of_zero(init, shrinkage):
    features = torch.full((60, 12), 0.1) if init == "whitened_pca" else some_features(6)[some_classes(60)]
    with pytest.raises(RefusedError, match=r"is zero: there is no variance, and no embedder\.shrinkage helps"):
        in_closed_form(EmbedderSpec(init=init, shrinkage=shrinkage), features, 5)


def test_a_fold_without_training_gets_the_components_of_its_training_images(dataset, setup):
    spec, data = toy_fold(dataset, PRETRAINED_PCA)
    trained = train_fold(spec, data)
    model = trained_model(spec, trained.weights, CPU)
    features = torch.cat(list(in_parts(model, model.features, EvaluationCrops(data.train, IMAGES, CPU))))
    expected = leading_directions(features, 8)
    np.testing.assert_allclose(trained.weights["embedder.weight"].numpy(), expected, atol=1e-5)
    assert trained.result.stopped_by == "untrained"
    assert (trained.result.iterations, len(trained.result.curve)) == (0, 1)
    assert trained.result.best_map_at_r == trained.result.curve[0].map_at_r
    settled = spec.changed(validation_classes=(), checkpoint_epoch=1)
    assert same_weights(train_fold(settled, setup.training_data(settled)).weights, trained.weights)


def test_components_of_the_test_images_are_those_of_pmls_tester(setup):
    testers = pytest.importorskip("pytorch_metric_learning.testers", reason="version 3 has no testers")
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
        theirs = testers.GlobalEmbeddingSpaceTester(pca=size).maybe_normalize(varying)
        # A component has no sign of its own.
        assert torch.allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-3)
