"""Trunks of timm: a stand-in for the library and, where they import, the libraries themselves."""

import sys
from types import SimpleNamespace

import pytest
from torch import nn

from protocols.trunks import library_trunks
from protocols.trunks.embedding_model import EmbeddingModel, check_images_fit
from protocols.trunks.trunk_registry import identified_trunk, trunk_entry
from protocols.trunks.weights import TrunkError
from results.spec.trunk_spec import TrunkSpec


class Network(nn.Module):
    def __init__(self, num_classes: int = 10, width: int = 6) -> None:
        super().__init__()
        self.num_features = width
        self.stem = nn.Conv2d(3, width, 3)
        self.head = nn.Linear(width, num_classes) if num_classes else nn.Identity()

    def forward(self, images):
        return self.head(self.stem(images).mean((2, 3)))


def filled(network: Network, value: float) -> Network:
    for parameter in network.parameters():
        nn.init.constant_(parameter, value)
    return network


@pytest.fixture
def forget_entries():
    yield
    library_trunks.timm_entry.cache_clear()


@pytest.fixture
def timm(monkeypatch, forget_entries):
    config = SimpleNamespace(mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6), hf_hub_id="here", url="")
    module = SimpleNamespace(offline=False, value=2.0)

    def create_model(name, pretrained=False, num_classes=10):
        if pretrained and module.offline:
            raise RuntimeError("no network\nand more")
        network = Network(num_classes)
        return filled(network, module.value) if pretrained else network

    module.create_model = create_model
    module.is_model = lambda name: name == "tiny.tag"
    module.list_models = lambda pattern: ["tiny"] if "tin" in pattern else []
    module.get_pretrained_cfg = lambda name: config
    monkeypatch.setitem(sys.modules, "timm", module)
    return module


def test_a_trunk_of_timm_has_its_weights_and_its_input_format(timm):
    spec = identified_trunk(TrunkSpec(name="timm:tiny.tag"))
    assert spec.weights.startswith("pretrained (sha256 ")
    model = EmbeddingModel(spec, 4)
    assert model.dimensions == 4
    assert model.trunk.network.stem.weight.min() == 2
    assert model.mean.flatten().tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert model.std.flatten().tolist() == pytest.approx([0.4, 0.5, 0.6])
    check_images_fit(spec, 8)


def test_other_weights_under_the_same_name_are_refused(timm):
    spec = identified_trunk(TrunkSpec(name="timm:tiny.tag"))
    timm.value = 3.0
    with pytest.raises(TrunkError, match=r"its weights are now pretrained .*, but this experiment began with"):
        EmbeddingModel(spec, 4)


@pytest.mark.parametrize(
    ("name", "weights", "said"),
    [
        ("timm:tin", "pretrained", "timm has no model 'tin'; similar names: tiny"),
        ("timm:big", "pretrained", r"timm has no model 'big'; timm.list_models\(\) lists all"),
        ("timm:tiny.tag", "imagenet", "no weights 'imagenet'; known are pretrained, random"),
        ("tim:tiny", "pretrained", "unknown trunk 'tim:tiny'|no Python module 'tim'"),
    ],
)
def test_unknown_names_give_one_line(timm, name, weights, said):
    with pytest.raises(TrunkError, match=said) as refused:
        identified_trunk(TrunkSpec(name=name, weights=weights))
    assert "\n" not in str(refused.value)


def test_weights_that_cannot_be_loaded_give_one_line(timm):
    timm.offline = True
    with pytest.raises(TrunkError, match=r"timm cannot load its weights \(no network\); connect this machine"):
        identified_trunk(TrunkSpec(name="timm:tiny.tag"))


def test_a_missing_library_gives_one_line(monkeypatch, forget_entries):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(TrunkError, match=r"needs the package timm: pip install -e '.\[timm\]'"):
        trunk_entry(TrunkSpec(name="timm:resnet18"))


@pytest.mark.parametrize("name", ["timm:test_resnet", "timm:test_vit", "timm:mobilenetv3_small_050"])
def test_small_models_of_timm(name, forget_entries):
    pytest.importorskip("timm", reason="the extra timm is not installed", exc_type=Exception)
    spec = identified_trunk(TrunkSpec(name=name, weights="random"))
    check_images_fit(spec, 96)
    with pytest.raises(TrunkError, match="no weights"):
        identified_trunk(TrunkSpec(name=name, weights="imagenet"))
