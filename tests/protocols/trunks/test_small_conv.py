"""The small trunk, and the embedder and input format around any trunk (specification, section 4)."""

import pytest
import torch
from torch import nn

from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.trunk_registry import SmallConv, trunk_entry
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


def test_the_embedder_is_one_linear_layer_with_bias() -> None:
    model = _model(8)
    assert isinstance(model.embedder, nn.Linear)
    assert model.embedder.weight.shape == (8, 128)
    assert model.embedder.bias is not None
    assert model.dimensions == 8
    images = _images(1)
    pixels = (images.float() / 255 - 0.5) / 0.5
    assert torch.allclose(model(images), model.embedder(model.trunk(pixels).mean((2, 3))), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        ("resnet", "imagenet", "unknown trunk 'resnet'; known are bn_inception, efficientnet_lite0, googlenet, "),
        ("small_conv", "imagenet", "trunk small_conv: no weights 'imagenet'; known are random"),
        ("bn_inception", "sha256:0123", "no weights 'sha256:0123'; known are imagenet, random"),
    ],
)
def test_unknown_trunks_and_weights_are_refused(name: str, weights: str, message: str) -> None:
    with pytest.raises(TrunkError, match=message):
        trunk_entry(TrunkSpec(name=name, weights=weights))
    with pytest.raises(TrunkError, match=message):
        EmbeddingModel(TrunkSpec(name=name, weights=weights), 8)
