"""Settings that an experiment on features, or with a frozen trunk, cannot have."""

from typing import Any

import pytest
from pydantic import ValidationError

from results.spec.experiment_spec import Experiment
from results.spec.trunk_spec import EmbedderSpec

FROZEN: dict[str, Any] = {"name": "efficientnet_lite0", "frozen": True}


def experiment(**changes: Any) -> Experiment:
    fields: dict[str, Any] = {"title": "t", "dataset": {"name": "features"}, "methods": ["contrastive"]}
    return Experiment.model_validate({**fields, **changes})


def frozen(**changes: Any) -> Experiment:
    return experiment(**{"dataset": {"name": "cub200"}, "trunk": FROZEN, **changes})


def test_features_have_no_trunk_and_remember_it():
    opened = experiment(embedder={"hidden": [512]})
    assert opened.trunk.name == "none"
    assert opened.trunk.is_input_features
    assert opened.embedder == EmbedderSpec(hidden=(512,))
    assert Experiment.model_validate(opened.model_dump(mode="json")) == opened


def test_a_frozen_trunk_has_published_weights_by_default():
    assert frozen(embedder={"init": "pca"}).trunk.weights == "imagenet"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trunk": FROZEN}, "has no images for a trunk; remove the key trunk"),
        ({"images": {"crop": 64}}, "has no images; remove the settings of images"),
        ({"dataset": {"name": "cub200"}, "trunk": {"name": "none", "weights": "none"}}, "name a trunk for the images"),
        ({"dataset": {"name": "cub200"}}, "trunk"),
    ],
)
def test_settings_that_features_cannot_have_are_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        experiment(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": {"flip": False}}, "flip has no effect on a frozen trunk"),
        ({"images": {"area": [0.6, 1.0]}}, "area has no effect on a frozen trunk"),
        ({"images": {"augmentation": "device"}}, "augmentation has no effect on a frozen trunk"),
        ({"trunk": {**FROZEN, "batch_norm": "frozen"}}, "batch_norm: frozen has no effect on a frozen trunk"),
        ({"trunk": {**FROZEN, "weights": "random"}}, "a frozen trunk needs trained weights"),
        ({"trunk": {**FROZEN, "width": 4}}, "width is set by the suite"),
        ({"embedder": {"init": "pca", "hidden": [8]}}, "init: pca is for a linear embedder"),
        ({"embedder": {"init": "pca"}, "embedder_bias": False}, "init: pca needs the bias"),
        (
            {"proxies": {"lr_multiplier": 10}, "search": {"network_lr": {"low": 1e-6, "high": 1e-3}}},
            "no fixed rate for proxies",
        ),
    ],
)
def test_settings_without_effect_on_a_frozen_trunk_are_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        frozen(**changes)
