"""A training's name changes when a class of its method changes."""

from importlib import metadata

import pytest

import losses
from losses import ProxyAnchorLoss
from protocols.training.check_method import component_version, with_versions
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


@pytest.mark.parametrize(
    ("name", "version"), [("ccp", 2), ("nir", 3), ("proxy_gml", 2), ("proxy_isa", 2), ("soft_triple", 2)]
)
def test_a_later_version_of_a_loss_has_its_own_name(name: str, version: int) -> None:
    """Another number would train all methods of a kept store again. A new version changes its line here."""
    (loss,) = (cls for key, cls in vars(losses).items() if key.lower() == f"{name.replace('_', '')}loss")
    assert component_version(loss) == f"version {version}"
