"""GoogLeNet and ResNets: what is made of torchvision's networks, and what is said where there is no torchvision.

Networks of torchvision's own layout stand in for it, so that the wrapping is tested without it; where it is installed,
the real ones are compared as well.
"""

import hashlib
import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.outside_trunks import IMAGENET_FORMAT
from protocols.trunks.trunk_entry import TrunkError, WeightFile
from protocols.trunks.trunk_registry import TRUNKS, identified_trunk
from results.spec.trunk_spec import TrunkSpec

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
