"""A training's name changes when a class of its method changes."""

from importlib import metadata

import pytest

from losses import ProxyAnchorLoss
from protocols.training.check_method import with_versions
from results.spec.training_spec import Component, MethodSpec, WeightedComponent

NESTED = {"base_loss": {"component": {"name": "ProxyAnchorLoss", "arguments": {"alpha": 16}}}}
METHOD = MethodSpec(
    name="wrapped",
    loss=Component(name="XBMLoss", arguments=NESTED),
    miner=Component(name="MultiSimilarityMiner"),
    embedding_regularizer=WeightedComponent(name="LpRegularizer", weight=0.1),
)


def test_every_class_of_a_method_has_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    release = f"pytorch-metric-learning {metadata.version('pytorch-metric-learning')}"
    versions = {
        "LpRegularizer": release,
        "MultiSimilarityMiner": "version 2",
        "ProxyAnchorLoss": "version 1",
        "XBMLoss": "version 1",
    }
    assert with_versions(METHOD).versions == versions
    monkeypatch.setattr(ProxyAnchorLoss, "VERSION", 2, raising=False)
    assert with_versions(METHOD).versions == {**versions, "ProxyAnchorLoss": "version 2"}
