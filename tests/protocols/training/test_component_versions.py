"""A training's name changes when a class of its method changes."""

from importlib import metadata

import pytest
from torch import nn

import losses
from losses import ProxyAnchorLoss
from protocols.training import component_versions
from protocols.training.check_method import with_versions
from protocols.training.component_versions import component_version
from results.spec.training_spec import Component, MethodSpec, WeightedComponent

NESTED = {"base_loss": {"component": {"name": "ProxyAnchorLoss", "arguments": {"alpha": 16}}}}
METHOD = MethodSpec(
    name="wrapped",
    loss=Component(name="XBMLoss", arguments=NESTED),
    miner=Component(name="MultiSimilarityMiner"),
    embedding_regularizer=WeightedComponent(name="LpRegularizer", weight=0.1),
)


def test_what_trainings_were_named_before_stays() -> None:
    """Nothing is written for classes that mean what they meant then: old stores keep their names."""
    assert with_versions(METHOD) == METHOD


def test_a_new_meaning_of_a_nested_class_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProxyAnchorLoss, "MEANING", 2, raising=False)
    assert with_versions(METHOD).versions == {"ProxyAnchorLoss": "meaning 2"}


def test_another_release_of_a_package_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component_versions, "UNWRITTEN", {})
    release = f"pytorch-metric-learning {metadata.version('pytorch-metric-learning')}"
    assert with_versions(METHOD).versions == {"LpRegularizer": release, "MultiSimilarityMiner": release}


@pytest.mark.parametrize(
    ("name", "meaning"), [("ccp", 2), ("nir", 3), ("proxy_gml", 2), ("proxy_isa", 2), ("soft_triple", 2)]
)
def test_a_later_meaning_of_a_loss_has_its_own_name(name: str, meaning: int) -> None:
    """Another number would train all methods of a kept store again. A new meaning changes its line here."""
    (loss,) = (cls for key, cls in vars(losses).items() if key.lower() == f"{name.replace('_', '')}loss")
    assert component_version(loss) == f"meaning {meaning}"


def test_every_class_of_the_suite_has_a_version_that_can_be_written() -> None:
    classes = [cls for cls in vars(losses).values() if isinstance(cls, type) and issubclass(cls, nn.Module)]
    assert classes
    for cls in classes:
        assert component_version(cls) is None or component_version(cls) == f"meaning {cls.MEANING}"  # type: ignore[attr-defined]
