"""BN-Inception: its keys, its forward pass against the original's, its input format, its weight file.

`golden/bn_inception_state_dict.csv` lists the keys and shapes of the published weights.

`golden/bn_inception_forward.npz` holds what the original network (Cadene/pretrained-models.pytorch at 8aae3d8, float32,
CPU, evaluation mode) makes of weights and images that are drawn anew here: `input_seed` and `input_size` of two images,
their globally average-pooled `gap_features` (2, 1024) and the classifier's `logits` (2, 1000). Each weight comes from
RandomState(crc32(key) % 2**31), as `drawn` says, so that the file of 44 MB is not needed. The tolerance is relative,
1e-4, since the order of summation in a convolution is not fixed.
"""

import csv
import math
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from protocols.trunks.bn_inception import BNInception
from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.trunk_registry import identified_trunk
from results.spec.trunk_spec import TrunkSpec

GOLDEN = Path(__file__).parents[2] / "golden"
PRETRAINED = TrunkSpec(name="bn_inception", weights="imagenet")


def published_shapes():
    with (GOLDEN / "bn_inception_state_dict.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {r["key"]: () if r["shape"] == "scalar" else tuple(map(int, r["shape"].split("x"))) for r in rows}


def drawn(key, shape):
    """The golden file's weight of a key."""
    state = np.random.RandomState(zlib.crc32(key.encode()) % 2**31)
    if key.endswith(".num_batches_tracked"):
        return torch.tensor(0)
    if key.endswith((".running_var", "_bn.weight")):
        value = state.uniform(0.5, 1.5, shape)
    elif key.endswith(".weight"):
        value = state.randn(*shape) * math.sqrt(2 / math.prod(shape[1:]))
    else:
        value = 0.1 * state.randn(*shape)
    return torch.from_numpy(np.asarray(value, dtype=np.float32))


@pytest.fixture(scope="module")
def checkpoint():
    """A full checkpoint, classifier included, with the golden file's weights."""
    return {key: drawn(key, shape) for key, shape in published_shapes().items()}


@pytest.fixture(scope="module")
def trunk(checkpoint):
    trunk = BNInception()
    trunk.load_state_dict({key: value for key, value in checkpoint.items() if not key.startswith("last_linear.")})
    return trunk.eval()


# The network


def test_keys_and_shapes_are_the_published_ones_without_the_classifier():
    published = [(key, shape) for key, shape in published_shapes().items() if not key.startswith("last_linear.")]
    assert len(published) == 483
    assert [(key, tuple(value.shape)) for key, value in BNInception().state_dict().items()] == published


def test_forward_is_the_originals(trunk, checkpoint):
    golden = np.load(GOLDEN / "bn_inception_forward.npz")
    state = np.random.RandomState(int(golden["input_seed"]))
    side = int(golden["input_size"])
    bgr = state.randint(0, 256, (2, 3, side, side)) - np.array([104, 117, 128])[:, None, None]
    with torch.no_grad():
        features = trunk(torch.from_numpy(bgr.astype(np.float32))).mean((2, 3))
        logits = nn.functional.linear(features, checkpoint["last_linear.weight"], checkpoint["last_linear.bias"])
    for ours, key in ((features, "gap_features"), (logits, "logits")):
        theirs = torch.from_numpy(golden[key])
        assert float((ours - theirs).abs().max() / theirs.abs().max()) < 1e-4
        # Single entries come near zero by cancellation; there only an absolute bound means something.
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()))


def test_files_from_before_torch_0_4_load(checkpoint, monkeypatch, tmp_path):
    """Their format is the old one and batch normalisation has no counters."""
    old = {key: value for key, value in checkpoint.items() if not key.endswith(".num_batches_tracked")}
    torch.save(old, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    monkeypatch.setenv("METRIC_LEARNING_WEIGHTS", str(tmp_path / "old.pth"))
    loaded = EmbeddingModel(identified_trunk(PRETRAINED), None).trunk.state_dict()
    assert all(torch.equal(value, checkpoint[key]) for key, value in loaded.items())


@pytest.mark.parametrize("trains_norms", [False, True])
def test_merged_layers_change_neither_values_nor_gradients_nor_weights(trains_norms):
    torch.manual_seed(0)
    trunk = BNInception().double().eval()
    for module in trunk.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.requires_grad_(trains_norms)
            for values in (module.running_mean, module.running_var, module.weight.data, module.bias.data):
                values.uniform_(0.5, 1.5)
    kept = {key: value.clone() for key, value in trunk.state_dict().items()}
    images = torch.randn(2, 3, 96, 64, dtype=torch.float64)
    parameters = [p for p in trunk.parameters() if p.requires_grad]
    found = []
    for trunk.merges_layers in (False, True):
        features = trunk(images)
        found.append([features, *torch.autograd.grad(features.square().sum(), parameters)])
    for plain, folded in zip(*found, strict=True):
        assert (folded - plain).norm() <= 1e-9 * plain.norm()
    assert all(torch.equal(value, kept[key]) for key, value in trunk.state_dict().items())
    assert list(kept) == list(trunk.state_dict())
