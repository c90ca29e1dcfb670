"""The numbers that a trunk gets for an image, against the formulas of the authors' code."""

import numpy as np
import pytest
import torch
from torch import nn

from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.trunk_registry import TRUNKS
from results.spec.trunk_spec import InputFormat, TrunkSpec

IMAGE = np.random.default_rng(0).integers(0, 256, (5, 4, 3))
"""Pixels of a small image: height, width, and red, green, blue."""
X = IMAGE / 255
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
IMAGENET = {"channels": "RGB", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


def bgr(values):
    return values[..., ::-1]


# By the trunk that is built and the format that is set (None: the trunk's own), what the trunk gets.
FORMATS = {
    "BN-Inception": ("bn_inception", None, bgr(IMAGE) - np.array([104, 117, 128])),
    "EfficientNet": ("efficientnet_lite0", None, (X - MEAN) / STD),
    "grey": ("small_conv", None, (X.mean(2, keepdims=True) - 0.5) / 0.5),
    "CCP": (
        "bn_inception",
        {"channels": "BGR", "scale": 255, "mean": [103.53, 116.28, 123.675], "std": [1, 1, 1]},
        bgr(255 * (X - MEAN)),
    ),
    "NIR": (
        "bn_inception",
        {"channels": "BGR", "mean": [0.4078, 0.4588, 0.502], "std": [0.0039, 0.0039, 0.0039]},
        (bgr(X) - np.array([0.4078, 0.4588, 0.502])) / 0.0039,
    ),
    "ImageNet's format for another network": ("bn_inception", IMAGENET, (X - MEAN) / STD),
    "grey, set": ("small_conv", {"channels": "grey", "mean": [0], "std": [2]}, X.mean(2, keepdims=True) / 2),
}


def what_the_trunk_gets(spec):
    model, seen = EmbeddingModel(spec, None), []
    model.trunk = nn.Identity()
    model.trunk.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(torch.from_numpy(IMAGE.astype(np.uint8)).permute(2, 0, 1)[None])
    (pixels,) = seen
    return pixels


@pytest.mark.parametrize("name", FORMATS)
def test_the_trunk_gets_the_numbers_of_the_formula(name):
    trunk, chosen, expected = FORMATS[name]
    pixels = what_the_trunk_gets(TrunkSpec.model_validate({"name": trunk, "weights": "random", "input_format": chosen}))
    assert pixels.shape == (1, expected.shape[2], 5, 4)
    np.testing.assert_allclose(pixels[0].permute(1, 2, 0).double().numpy(), expected, rtol=1e-5, atol=2e-5)


def test_googlenets_own_format_is_not_that_of_the_other_networks_of_torchvision():
    """The entry of the registry alone: building the network needs torchvision."""
    assert TRUNKS["googlenet"].input == InputFormat(channels="RGB", mean=(0.5,) * 3, std=(0.5,) * 3)
    assert TRUNKS["resnet50"].input == InputFormat(**IMAGENET)


def test_the_format_of_the_trunk_itself_changes_nothing():
    spec = TrunkSpec(name="bn_inception", weights="random")
    same = spec.model_copy(update={"input_format": TRUNKS["bn_inception"].input})
    assert torch.equal(what_the_trunk_gets(spec), what_the_trunk_gets(same))
