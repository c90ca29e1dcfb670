"""Trunks of timm: a stand-in for the library and, where they import, the libraries themselves."""

import re
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from protocols.trunks import outside_trunks
from protocols.trunks.embedding_model import EmbeddingModel, check_images_fit
from protocols.trunks.trunk_entry import TrunkError
from protocols.trunks.trunk_registry import identified_trunk, trunk_entry
from results.spec.trunk_spec import TrunkSpec
from tests.support.documentation import ROOT


class Network(nn.Module):
    def __init__(self, num_classes=10, width=6):
        super().__init__()
        self.num_features = width
        self.stem = nn.Conv2d(3, width, 3)
        self.head = nn.Linear(width, num_classes) if num_classes else nn.Identity()

    def forward(self, images):
        return self.head(self.stem(images).mean((2, 3)))


def filled(network, value):
    for parameter in network.parameters():
        nn.init.constant_(parameter, value)
    return network


@pytest.fixture
def forget_entries():
    yield
    outside_trunks.timm_entry.cache_clear()


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


DOCUMENTED = {
    "resnet18.tv_in1k",
    "vit_base_patch14_reg4_dinov2.lvd142m",
    "vit_base_patch16_clip_quickgelu_224.openai",
    "vit_base_patch16_dinov3.lvd1689m",
    "vit_base_patch16_siglip_224.v2_webli",
    "vit_small_patch14_dinov2.lvd142m",
    "vit_small_patch16_224.dino",
    "vit_small_patch16_dinov3.lvd1689m",
}
"""Looked up in the registry of timm 1.0.31: each has weights, and none is said there to have another activation."""


def test_names_of_timm_in_documents_are_timms_and_have_the_activation_of_their_weights():
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "reproduce").rglob("*.yaml")]
    text = "".join(file.read_text() for file in files)
    named = set(re.findall(r"\b(?:vit|resnet|convnext|eva|swin)\w*\.\w+", text)) - {"resnet50.yaml"}
    assert named == DOCUMENTED
    try:
        import timm
    except Exception:
        return  # The list stands for the library.
    for name in named:
        assert timm.is_model_pretrained(name), name
        assert outside_trunks.timm_entry(name).note == "", name


def test_a_clip_without_the_activation_of_its_weights_gets_a_line(timm):
    notes = ("natively QuickGELU, use quickgelu model variant for original results",)
    timm.get_pretrained_cfg = lambda name: SimpleNamespace(
        mean=(0,) * 3, std=(1,) * 3, hf_hub_id="a", url="", notes=notes
    )
    timm.is_model = lambda name: True
    note = outside_trunks.timm_entry("vit_base_patch16_clip_224.openai").note
    assert note.endswith("timm:vit_base_patch16_clip_quickgelu_224.openai is their network")
    assert outside_trunks.timm_entry("vit_base_patch16_clip_quickgelu_224.openai").note == ""


def test_weights_of_a_model_of_timm_keep_its_own_keys(timm, tmp_path, monkeypatch):
    monkeypatch.setenv("METRIC_LEARNING_WEIGHTS", "")
    torch.save(filled(Network(), 5.0).state_dict(), tmp_path / "own.pth")  # With the head, which is left out.
    spec = identified_trunk(TrunkSpec(name="timm:tiny.tag"), tmp_path / "own.pth")
    assert EmbeddingModel(spec, 4).trunk.network.stem.weight.min() == 5


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
