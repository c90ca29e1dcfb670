"""The small trunk, and the embedder and input format around any trunk (specification, section 4)."""

import pytest
import torch
from torch import nn

from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.trunk_registry import TRUNKS, SmallConv, trunk_entry
from protocols.trunks.weights import TrunkError
from results.spec.trunk_spec import TrunkSpec

SMALL = TrunkSpec(name="small_conv", weights="random")


def _model(embedding_size: int | None = 8, seed: int = 0) -> EmbeddingModel:
    torch.manual_seed(seed)
    return EmbeddingModel(SMALL, embedding_size)


def _images(channels: int, side: int = 32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (3, channels, side, side), generator=generator, dtype=torch.uint8)


@pytest.mark.parametrize("side", [8, 17, 32])
def test_features_of_any_size(side: int) -> None:
    trunk = SmallConv()
    last = -(-side // 16)
    assert trunk(torch.randn(2, 1, side, side)).shape == (2, trunk.features, last, last) == (2, 128, last, last)


def test_there_is_no_batch_normalisation() -> None:
    kinds = {type(module) for module in SmallConv().modules()}
    assert nn.GroupNorm in kinds
    assert nn.BatchNorm2d not in kinds


def test_an_image_does_not_see_its_batch() -> None:
    model, images = _model().train(), _images(1)
    assert torch.allclose(model(images)[1:2], model(images[1:2]), atol=1e-6)


def test_keys_load_strictly() -> None:
    model, other = _model(seed=0), _model(seed=1)
    images = _images(1)
    assert not torch.equal(model(images), other(images))
    other.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(model(images), other(images))
    assert set(model.state_dict()) == {key for key, _ in model.named_parameters()}


def test_the_embedder_is_one_linear_layer_with_bias() -> None:
    model = _model(8)
    assert isinstance(model.embedder, nn.Linear)
    assert model.embedder.weight.shape == (8, 128)
    assert model.embedder.bias is not None
    assert model.dimensions == 8
    images = _images(1)
    pixels = (images.float() / 255 - 0.5) / 0.5
    assert torch.allclose(model(images), model.embedder(model.trunk(pixels).mean((2, 3))), atol=1e-6)


def test_without_an_embedder_the_features_come_out() -> None:
    model = _model(None)
    assert model.dimensions == 128
    assert model(_images(1)).shape == (3, 128)


def test_embeddings_are_not_normalised() -> None:
    norms = _model()(_images(1)).norm(dim=1)
    assert ((norms - 1).abs() > 1e-3).all()


def test_rgb_images_are_averaged_to_grey() -> None:
    model, images = _model(), _images(1)
    assert torch.allclose(model(images), model(images.expand(-1, 3, -1, -1)), atol=1e-5)
    coloured = _images(3)
    pixels = (coloured.float().mean(1, keepdim=True) / 255 - 0.5) / 0.5
    assert torch.allclose(model(coloured), model.embedder(model.trunk(pixels).mean((2, 3))), atol=1e-5)


def test_output_is_deterministic() -> None:
    assert torch.equal(_model(seed=3)(_images(1)), _model(seed=3)(_images(1)))


def test_input_constants_are_no_weights() -> None:
    model = _model()
    assert not {"mean", "std"} & set(model.state_dict())
    assert {"mean", "std"} <= {name for name, _ in model.named_buffers()}


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        ("resnet", "imagenet", "unknown trunk 'resnet'; known are bn_inception, efficientnet_lite0, googlenet, "),
        ("small_conv", "imagenet", "trunk small_conv: no weights 'imagenet'; known are random"),
        ("small_conv", "sha256:0123456789abcdef", "no weights 'sha256:0123456789abcdef'; known are random"),
        ("bn_inception", "sha256:0123", "no weights 'sha256:0123'; known are imagenet, random"),
        ("efficientnet_lite0", "places", "no weights 'places'; known are imagenet, random"),
    ],
)
def test_unknown_trunks_and_weights_are_refused(name: str, weights: str, message: str) -> None:
    with pytest.raises(TrunkError, match=message):
        trunk_entry(TrunkSpec(name=name, weights=weights))
    with pytest.raises(TrunkError, match=message):
        EmbeddingModel(TrunkSpec(name=name, weights=weights), 8)


@pytest.mark.parametrize("name", TRUNKS)
def test_entries_have_weights_to_start_from(name: str) -> None:
    assert TRUNKS[name].weights
