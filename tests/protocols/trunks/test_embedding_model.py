"""Pooling, batch normalisation and the embedder's bias around any trunk (specification, section 4)."""

import numpy as np
import pytest
import torch
from torch import nn

from protocols.datasets.splits import mlrc_split
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.trunk_entry import TrunkError
from protocols.trunks.trunk_registry import SmallConv, trunk_entry
from results.spec.trunk_spec import EmbedderSpec, TrunkSpec
from tests.support.sample_records import evaluation_of
from tests.support.toys import toy_fold

SIDES = {"small_conv": 32, "efficientnet_lite0": 64, "bn_inception": 64}


def _model(name, size=8, *, embedder_bias=True, **changes):
    torch.manual_seed(0)
    spec = TrunkSpec.model_validate({"name": name, "weights": "random", **changes})
    return EmbeddingModel(spec, size, embedder_bias=embedder_bias)


def _images(side):
    return torch.randint(0, 256, (4, 3, side, side), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


def _feature_map(model, images):
    seen = []
    handle = model.trunk.register_forward_hook(lambda module, inputs, output: seen.append(output))
    model(images)
    handle.remove()
    return seen[0]


# Pooling


@pytest.mark.parametrize(("name", "side"), SIDES.items())
def test_average_is_the_mean_of_the_last_map_to_the_bit(name, side):
    """Whichever of PyTorch's two operators pools: kept results were made with either."""
    model, images = _model(name, None).eval(), _images(side)
    with torch.no_grad():
        last = _feature_map(model, images)
        assert last.shape[:2] == (4, model.dimensions)
        assert torch.equal(model(images), last.mean((2, 3)))
        assert torch.equal(model(images), nn.functional.adaptive_avg_pool2d(last, 1).flatten(1))
    expected = last.double().numpy().reshape(4, model.dimensions, -1).mean(axis=2)
    assert np.allclose(model(images).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "side"), SIDES.items())
def test_average_max_is_the_sum_of_both(name, side):
    model, images = _model(name, None, pooling="average_max").eval(), _images(side)
    with torch.no_grad():
        last = _feature_map(model, images).double().numpy().reshape(4, model.dimensions, -1)
        pooled = model(images).numpy()
    assert np.allclose(pooled, last.mean(axis=2) + last.max(axis=2), rtol=1e-4, atol=1e-5)
    assert not np.allclose(pooled, last.mean(axis=2), rtol=0.1)


def test_average_max_has_the_gradient_of_proxy_anchors_code():
    model = _model("small_conv", None, pooling="average_max")
    model.trunk = nn.Identity()
    maps = torch.randn(2, 1, 5, 5, generator=torch.Generator().manual_seed(2))
    ours, theirs = (maps.clone().requires_grad_() for _ in range(2))
    model._pooled(ours).square().sum().backward()
    both = nn.AdaptiveAvgPool2d(1)(theirs) + nn.AdaptiveMaxPool2d(1)(theirs)
    both.square().sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-6)


# Batch normalisation


@pytest.mark.parametrize("batch_norm", ["statistics_frozen", "frozen", "training"])
def test_what_of_batch_normalisation_trains(batch_norm):
    model, images = _model("bn_inception", batch_norm=batch_norm).train(), _images(64)
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == 69
    means = [(norm.running_mean.clone(), norm.running_var.clone()) for norm in norms]
    model(images).square().sum().backward()
    for norm, (mean, variance) in zip(norms, means, strict=True):
        assert norm.training == (batch_norm == "training")
        assert int(norm.num_batches_tracked) == (1 if batch_norm == "training" else 0)
        assert torch.equal(norm.running_mean, mean) != (batch_norm == "training")
        assert torch.equal(norm.running_var, variance) != (batch_norm == "training")
        assert (norm.weight.grad is None) == (norm.bias.grad is None) == (batch_norm == "frozen")
    assert next(model.trunk.parameters()).grad is not None


@pytest.mark.parametrize(("chosen", "momentum"), [(0.9, 0.9), (None, 0.1)])
def test_every_layer_of_batch_normalisation_has_the_momentum(chosen, momentum):
    model = _model("bn_inception", batch_norm="training", batch_norm_momentum=chosen)
    assert {layer.momentum for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)} == {momentum}


# The embedder's bias


def test_the_start_of_ccps_code_is_uniform_within_glorots_bound():
    torch.manual_seed(3)
    spec = TrunkSpec(name="none", weights="none", width=1024)
    embedder = EmbedderSpec(init="glorot_uniform")
    model = EmbeddingModel(spec, 128, embedder=embedder, embedder_bias=False, on_features=True)
    bound = (6 / (1024 + 128)) ** 0.5
    weight = model.embedder.weight.detach()
    assert 0.99 * bound < weight.abs().max().item() <= bound
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)


def test_the_start_of_proxy_anchors_code_is_kaiming_normal_with_a_zero_bias():
    torch.manual_seed(3)
    spec = TrunkSpec(name="none", weights="none", width=1024)
    model = EmbeddingModel(spec, 256, embedder=EmbedderSpec(init="kaiming_fan_out"), on_features=True)
    weight = model.embedder.weight.detach()
    # N(0, 2 / d) for d outputs: with 262,144 draws, five standard errors of the deviation are 0.7 %.
    assert weight.std().item() == pytest.approx((2 / 256) ** 0.5, rel=0.007)
    # Normal, not uniform, which has no value beyond 1.73 deviations.
    assert (weight.abs() > 3 * weight.std()).any()
    assert not model.embedder.bias.any()


@pytest.mark.parametrize("embedder_bias", [True, False])
def test_trainings_and_evaluations_build_the_embedder_that_is_asked_for(dataset, embedder_bias):
    spec, data = toy_fold(dataset, embedder_bias=embedder_bias)
    trained = train_fold(spec, data)
    assert ("embedder.bias" in trained.weights) == embedder_bias
    record = _evaluated(dataset, spec, trained.weights)
    assert record.dimensions == 8


def _evaluated(dataset, spec, weights):
    job = evaluation_of(spec)
    return evaluate_run(job, [weights], data_for_testing(dataset, mlrc_split(dataset.n_classes)))


@pytest.mark.parametrize("side", [8, 17, 32])
def test_features_of_any_size(side):
    trunk = SmallConv()
    last = -(-side // 16)
    assert trunk(torch.randn(2, 1, side, side)).shape == (2, trunk.features, last, last) == (2, 128, last, last)


def test_the_embedder_is_one_linear_layer_with_a_bias_unless_it_is_left_out():
    model, without = _model("small_conv"), _model("small_conv", embedder_bias=False)
    assert isinstance(model.embedder, nn.Linear)
    assert model.embedder.weight.shape == (8, 128)
    assert torch.equal(model.embedder.weight, without.embedder.weight)
    assert (model.embedder.bias is not None, without.embedder.bias) == (True, None)
    assert model.dimensions == 8
    images = _images(32)[:, :1]
    pixels = (images.float() / 255 - 0.5) / 0.5
    assert torch.allclose(model(images), model.embedder(model.trunk(pixels).mean((2, 3))), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        (
            "resnet",
            "imagenet",
            "unknown trunk 'resnet'; known are bn_inception, efficientnet_lite0, efficientnet_lite2, ",
        ),
        ("small_conv", "imagenet", "trunk small_conv: no weights 'imagenet'; known are random"),
        ("bn_inception", "sha256:0123", "no weights 'sha256:0123'; known are imagenet, random"),
    ],
)
def test_unknown_trunks_and_weights_are_refused(name, weights, message):
    with pytest.raises(TrunkError, match=message):
        trunk_entry(TrunkSpec(name=name, weights=weights))
    with pytest.raises(TrunkError, match=message):
        EmbeddingModel(TrunkSpec(name=name, weights=weights), 8)
