"""EfficientNet-Lite0: its weight file, its frozen batch normalisation, its scores on real photographs."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from protocols.datasets.dataset import DataRequest
from protocols.datasets.dataset_registry import open_dataset
from protocols.images.samples import EvaluationCrops
from protocols.metrics.retrieval import normalized, query_scores
from protocols.trunks.efficientnet_lite import EfficientNetLite0, SamePadConv2d, imagenet_weights
from protocols.trunks.embedding_model import EmbeddingModel, embed_crops
from results.spec.conditions import ImageSettings
from results.spec.data_choice import DataChoice
from results.spec.trunk_spec import TrunkSpec


@pytest.fixture(scope="module")
def images():
    return torch.randint(0, 256, (4, 3, 64, 64), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def _model(batch_norm="statistics_frozen", weights="imagenet", size=8):
    torch.manual_seed(0)
    spec = TrunkSpec.model_validate({"name": "efficientnet_lite0", "weights": weights, "batch_norm": batch_norm})
    return EmbeddingModel(spec, size)


def _norms(model):
    return [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]


def test_the_weight_file_fits_exactly():
    trunk, weights = EfficientNetLite0(), imagenet_weights()
    assert set(trunk.state_dict()) == set(weights)
    trunk.load_state_dict(weights, strict=True)
    loaded = _model().trunk.state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in weights.items())


def test_features_and_parameters_are_those_of_the_architecture(images):
    trunk = _model().trunk
    # 4.65 million of the paper's classifier network, less the classifier's 1280 * 1000 + 1000.
    assert sum(p.numel() for p in trunk.parameters()) == 4_652_008 - 1_281_000
    assert _model(size=None)(images).shape == (4, 1280)
    assert {norm.eps for norm in _norms(_model())} == {1e-3}


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(3, 1, (1, 1)), (5, 1, (2, 2)), (3, 2, (0, 1)), (5, 2, (1, 2))]
)
def test_padding_is_tensorflows_for_even_sizes(kernel, stride, padding):
    conv = SamePadConv2d(1, 1, kernel, stride)
    image = torch.randn(1, 1, 16, 16)
    before, after = padding
    padded = nn.functional.pad(image, (before, after, before, after))
    expected = nn.functional.conv2d(padded, conv.weight, stride=stride)
    assert conv(image).shape[-1] == 16 // stride
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
