"""Trunks of torchvision and timm, and what is said where a library is missing.

Stand-ins test what is made of a library's networks; where a library is installed, its own networks are tested as well.
"""

import hashlib
import re
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from protocols.trunks import outside_trunks
from protocols.trunks.embedding_model import EmbeddingModel, check_images_fit
from protocols.trunks.outside_trunks import IMAGENET_FORMAT
from protocols.trunks.trunk_entry import TrunkError, WeightFile
from protocols.trunks.trunk_registry import TRUNKS, identified_trunk, trunk_entry
from results.spec.trunk_spec import TrunkSpec
from tests.support.documentation import ROOT

NAMES = ("googlenet", "resnet50", "resnet101")


class FakeResNet(nn.Module):
    """torchvision's ResNet in small: the same names in the same order, called in its way."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.layer4 = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 10)

    def last_map(self, x):
        output = self.layer4(self.layer1(self.maxpool(self.relu(self.bn1(self.conv1(x))))))
        return output

    def forward(self, x):
        output = self.fc(torch.flatten(self.avgpool(self.last_map(x)), 1))
        return output


class FakeGoogLeNet(nn.Module):
    """torchvision's GoogLeNet in small, with its heads, its dropout and its own input normalisation."""

    def __init__(self, aux_logits=True, transform_input=False, init_weights=None):
        super().__init__()
        self.transform_input = transform_input
        self.conv1 = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8, eps=0.001), nn.ReLU())
        self.maxpool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.inception5b = nn.Conv2d(8, 12, 1)
        self.aux1 = nn.Linear(8, 10) if aux_logits else None
        self.aux2 = nn.Linear(8, 10) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(12, 10)

    def last_map(self, x):
        if self.transform_input:
            mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET_FORMAT.mean, IMAGENET_FORMAT.std))
            x = x * (std / 0.5) + (mean - 0.5) / 0.5
        output = self.inception5b(self.maxpool1(self.conv1(x)))
        return output


FAKES = {"googlenet": FakeGoogLeNet, "resnet50": FakeResNet, "resnet101": FakeResNet}


@pytest.fixture
def fake(monkeypatch):
    """Puts the fakes in torchvision's place; returns what is asked of it."""
    asked = []

    def get_model(name, *, weights, **arguments):
        assert weights is None, "torchvision must not load or fetch anything itself"
        asked.append((name, arguments))
        return FAKES[name](**arguments)

    package, models = ModuleType("torchvision"), ModuleType("torchvision.models")
    vars(models)["get_model"] = get_model
    vars(package)["models"] = models
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return asked


@pytest.fixture(autouse=True)
def no_weights_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("METRIC_LEARNING_WEIGHTS", raising=False)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))


def _images(side=64):
    return torch.randint(0, 256, (2, 3, side, side), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def _lively(network):
    """The network in evaluation mode with statistics that are not the initial ones."""
    torch.manual_seed(7)
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    return network.eval()


def _publish(monkeypatch, tmp_path, name, network):
    """Makes the network's weights, classifier included, the trunk's published file, already among the downloads."""
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    torch.save(network.state_dict(), folder / "new.pth")
    digest = hashlib.sha256((folder / "new.pth").read_bytes()).hexdigest()
    (folder / "new.pth").rename(folder / f"{name}-{digest[:8]}.pth")
    entry = TRUNKS[name]
    file = WeightFile(name, f"http://127.0.0.1:9/{name}-{digest[:8]}.pth", entry.file.classifier)
    monkeypatch.setitem(TRUNKS, name, type(entry)(entry.build, entry.input, file=file))


@pytest.mark.parametrize("name", NAMES)
def test_the_published_weights_give_torchvisions_last_map(fake, name, monkeypatch, tmp_path):
    """GoogLeNet's heads are in the file; torchvision takes ImageNet's format and transforms it."""
    whole = {"aux_logits": True, "transform_input": True, "init_weights": True} if name == "googlenet" else {}
    network = _lively(FAKES[name](**whole))
    _publish(monkeypatch, tmp_path, name, network)
    spec = identified_trunk(TrunkSpec(name=name, weights="imagenet"))
    assert spec.weights == "imagenet"
    model, images = EmbeddingModel(spec, None).eval(), _images()
    mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET_FORMAT.mean, IMAGENET_FORMAT.std))
    with torch.no_grad():
        expected = network.last_map((images / 255 - mean) / std)
        assert torch.allclose(model(images), expected.mean((2, 3)), rtol=1e-4, atol=1e-5)
        assert model.trunk(images.float()).shape == expected.shape
    assert model.dimensions == expected.shape[1]
    kept = {key for key in network.state_dict() if not key.startswith(("fc.", "aux"))}
    assert set(model.trunk.state_dict()) == kept


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weights", ["imagenet", "random"])
def test_without_torchvision_one_line_says_what_to_install(name, weights, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    spec = TrunkSpec(name=name, weights=weights)
    for ask in (identified_trunk, lambda spec: EmbeddingModel(spec, 8)):
        with pytest.raises(
            TrunkError, match=rf"^trunk {name} needs the package torchvision: pip install -e '\.\["
        ) as error:
            ask(spec)
        assert "ModuleNotFoundError" in str(error.value)
        assert "\n" not in str(error.value)


def _torchvision():
    try:
        from torchvision import models
    except Exception as error:
        pytest.skip(f"torchvision does not import here: {type(error).__name__}: {error}")
    return models


@pytest.mark.parametrize("name", NAMES)
def test_addresses_and_keys_are_torchvisions(name):
    models, file = _torchvision(), TRUNKS[name].file
    assert models.get_model_weights(name)["IMAGENET1K_V1"].url == file.url
    arguments = {"init_weights": False} if name == "googlenet" else {}
    whole = models.get_model(name, weights=None, **arguments).state_dict()
    kept = {key: value.shape for key, value in whole.items() if not key.startswith(file.classifier)}
    assert TRUNKS[name].shapes() == kept


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
    named = set(re.findall(r"\b(?:vit|resnet|convnext|eva|swin)\w*\.\w+", text)) - {"resnet50.yaml", "evaleval.jsonl"}
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
