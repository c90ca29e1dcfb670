"""Mixed precision and the channels-last layout: how far they may move embeddings and gradients."""

import pytest
import torch

from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.trunk_spec import TrunkSpec

CPU = torch.device("cpu")
TRUNKS = ["small_conv", "bn_inception", "efficientnet_lite0"]


def _models(trunk):
    """The same network in float32 and in mixed precision."""
    spec = TrunkSpec(name=trunk, weights="random")
    torch.manual_seed(0)
    exact, mixed = EmbeddingModel(spec, 16), EmbeddingModel(spec, 16, precision="amp")
    mixed.load_state_dict(exact.state_dict())
    return exact, mixed


def _images(side=96):
    return torch.randint(0, 256, (6, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def _distance(one, other):
    """Relative to the length of the second."""
    return float((one - other).norm() / other.norm())


@pytest.mark.parametrize("trunk", TRUNKS)
def test_mixed_embeddings_are_near_and_float32(trunk):
    exact, mixed = _models(trunk)
    with torch.no_grad():
        expected, embeddings = exact.eval()(_images()), mixed.eval()(_images())
    assert embeddings.dtype == torch.float32
    # bfloat16 keeps 8 bits: 0.4 % a rounding.
    assert 1e-4 < _distance(embeddings, expected) < 0.03


@pytest.mark.parametrize("trunk", TRUNKS)
def test_channels_last_gives_the_same_embeddings(trunk):
    plain, _ = _models(trunk)
    other, _ = _models(trunk)
    other.channels_last_on_cpu = True
    other.place(CPU)
    layouts = []
    other.trunk.register_forward_pre_hook(
        lambda _, inputs: layouts.append(inputs[0].is_contiguous(memory_format=torch.channels_last))
    )
    with torch.no_grad():
        torch.testing.assert_close(other.eval()(_images()), plain.eval()(_images()), rtol=1e-4, atol=1e-4)
    assert layouts == [True]
    kernels = [p for p in other.parameters() if p.dim() == 4 and p.shape[1] > 1 and p.shape[2] > 1]
    assert kernels
    assert all(p.is_contiguous(memory_format=torch.channels_last) for p in kernels)


def test_the_trunk_decides_the_layout_on_a_cpu():
    for trunk, expected in (("small_conv", torch.contiguous_format), ("efficientnet_lite0", torch.channels_last)):
        model, _ = _models(trunk)
        assert model.place(CPU) is model
        assert model.layout == expected
        assert all(p.is_contiguous(memory_format=expected) for p in model.parameters() if p.dim() == 4)
