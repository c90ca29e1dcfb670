"""Trunks that others build: libraries, or functions in users' files and modules.

The libraries are torchvision, with the papers' networks, and timm, as in `timm:vit_base_patch14_dinov2`. Both
are optional packages, imported only when one of their trunks is named.

A user's function is named as in `./my_trunk.py:build` or `my_package.module:build`. `build()` returns a
`torch.nn.Module` that maps images (n, 3, h, w) to features: a feature map (n, c, h, w), which is pooled, or pooled
features (n, c). Beside it, `INPUT_FORMAT` says which numbers the module gets for an image.
"""

import importlib
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import takewhile
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from protocols.trunks.trunk_entry import TrunkEntry, TrunkError, WeightFile
from protocols.users_code.sources import SourceError, explained, load_source
from results.spec.component import SourceName
from results.spec.trunk_spec import InputFormat
from results.wording import first_line

IMAGENET_FORMAT = InputFormat(channels="RGB", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))

# torchvision's addresses of IMAGENET1K_V1. GoogLeNet's file contains auxiliary heads, but without trained values.
GOOGLENET_FILE = WeightFile(
    "googlenet", "https://download.pytorch.org/models/googlenet-1378be20.pth", ("fc.", "aux1.", "aux2.")
)
RESNET50_FILE = WeightFile("resnet50", "https://download.pytorch.org/models/resnet50-0676ba61.pth", ("fc.",))
RESNET101_FILE = WeightFile("resnet101", "https://download.pytorch.org/models/resnet101-63fe2227.pth", ("fc.",))

# No auxiliary heads. No `transform_input`, because the images already have the format that the ImageNet weights need.
# The initialisation is the default; it is given because torchvision warns that the default may change.
_OF_GOOGLENET = {"aux_logits": False, "transform_input": False, "init_weights": True}

_PROBE = 64
"""Side of the images on which the number of features is found, if the module does not say it."""


class OutsideTrunk(nn.Module):
    """A network that a library or a user's file built: images to pooled features (n, features), or to a feature map."""

    def __init__(self, network: nn.Module, features: int) -> None:
        super().__init__()
        self.network, self.features = network, features

    def forward(self, images: Tensor) -> Tensor:
        """Compute the features."""
        features: Tensor = self.network(images)
        return features


class TorchvisionTrunk(nn.Sequential):
    """The layers of a network before its pooling and classifier: images (n, 3, h, w) to features (n, features, ...).

    These networks call their layers in the order of their definition. So a sequence of the layers, with the same names,
    computes the same features and has the same keys.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__(OrderedDict(takewhile(lambda layer: layer[0] != "avgpool", network.named_children())))
        classifier = network.get_submodule("fc")
        assert isinstance(classifier, nn.Linear)
        self.features = classifier.in_features


def torchvision_trunk(name: str) -> TorchvisionTrunk:
    """Build a trunk with random weights."""
    models = _imported("torchvision", name).models
    return TorchvisionTrunk(models.get_model(name, weights=None, **(_OF_GOOGLENET if name == "googlenet" else {})))


@cache
def timm_entry(name: str) -> TrunkEntry:
    """Look up a trunk of timm."""
    timm = _imported("timm", f"timm:{name}")
    if not timm.is_model(name):
        similar = timm.list_models(f"*{name.partition('.')[0]}*")[:3]
        hint = f"; similar names: {', '.join(similar)}" if similar else ""
        raise TrunkError(f"timm has no model {name!r}{hint}; timm.list_models() lists all")
    config = timm.get_pretrained_cfg(name)
    pixels = InputFormat(channels="RGB", mean=tuple(config.mean), std=tuple(config.std)) if config else IMAGENET_FORMAT
    return TrunkEntry(
        partial(_timm_trunk, name),
        pixels,
        pretrained=partial(_timm_weights, name) if config and (config.hf_hub_id or config.url) else None,
        file=WeightFile(f"timm:{name}", None, ("network.head.", "network.fc.", "network.classifier.")),
        outside=True,
        note=_activation_note(name, getattr(config, "notes", None) or ()),
    )


def _activation_note(name: str, notes: Sequence[str]) -> str:
    """Say that a model, such as a CLIP of OpenAI, has another activation than its weights were trained with."""
    if "quickgelu" in name or not any("quickgelu" in note.lower() for note in notes):
        return ""
    variant = name.replace("_clip_", "_clip_quickgelu_")
    return f"timm:{name} has GELU, its weights were trained with QuickGELU; timm:{variant} is their network"


def _imported(package: str, trunk: str) -> Any:
    """Import a library; a package for another PyTorch raises different errors."""
    try:
        return importlib.import_module(package)
    except Exception as error:
        raise TrunkError(
            f"trunk {trunk} needs the package {package}: pip install -e '.[{package}]', in the version that belongs to "
            f"your PyTorch; importing it failed ({type(error).__name__}: {first_line(error)})"
        ) from error


def _timm_trunk(name: str, *, pretrained: bool = False) -> OutsideTrunk:
    timm = _imported("timm", f"timm:{name}")
    try:  # Vision transformers then take any multiple of their patch size.
        network = timm.create_model(name, pretrained=pretrained, num_classes=0, dynamic_img_size=True)
    except TypeError:
        network = timm.create_model(name, pretrained=pretrained, num_classes=0)
    return OutsideTrunk(network, getattr(network, "head_hidden_size", None) or network.num_features)


def _timm_weights(name: str) -> Mapping[str, Tensor]:
    try:
        return _timm_trunk(name, pretrained=True).state_dict()
    except (RuntimeError, OSError, ImportError, ValueError) as error:
        raise TrunkError(
            f"trunk timm:{name}: timm cannot load its weights ({first_line(error)}); connect this machine to the "
            "network once, or name a file of weights with --weights, or use weights: random"
        ) from error


@cache
def file_entry(name: str) -> TrunkEntry:
    """Look up a trunk of a user's file or module."""
    parsed = SourceName.parse(name)
    assert parsed is not None
    try:
        function = load_source(parsed)
    except SourceError as error:
        raise TrunkError(f"trunk {name}: {error}") from error
    return TrunkEntry(
        partial(_users_trunk, name, function),
        _input_format(name, function),
        pretrained=partial(_users_weights, name, function),
        file=WeightFile(name, None, ()),
        outside=True,
    )


def try_trunk(name: SourceName) -> None:
    """Build a user's trunk and compute an image, for what both load. What fails is reported when the trunk is used."""
    with suppress(Exception), torch.random.fork_rng([]), torch.no_grad():
        entry = file_entry(str(name))
        entry.build().eval()(torch.zeros(1, entry.input.n_channels, _PROBE, _PROBE))


def _input_format(name: str, function: Any) -> InputFormat:
    declared = getattr(sys.modules.get(function.__module__), "INPUT_FORMAT", None)
    example = 'INPUT_FORMAT = {"channels": "RGB", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}'
    if declared is None:
        raise TrunkError(f"trunk {name}: say beside {function.__name__} which input it needs, such as {example}")
    try:
        return InputFormat.model_validate(declared)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        raise TrunkError(f"trunk {name}: INPUT_FORMAT {key}: {problem['msg']}; an example: {example}") from error


def _users_trunk(name: str, function: Any) -> OutsideTrunk:
    with explained(function, f"trunk {name}", TrunkError):
        network = function()
    if not isinstance(network, nn.Module):
        raise TrunkError(
            f"trunk {name}: {function.__name__}() returned {type(network).__name__}, not a torch.nn.Module"
        )
    features = getattr(network, "features", None)
    return OutsideTrunk(network, features if isinstance(features, int) else _count(name, function, network))


def _count(name: str, function: Any, network: nn.Module) -> int:
    channels = _input_format(name, function).n_channels
    what = f"its module cannot compute an image of {_PROBE} x {_PROBE} pixels"
    remedy = "set its attribute `features` to the number of its features"
    was_training = network.training
    network.eval()
    with explained(function, f"trunk {name}: {what}; {remedy}", TrunkError), torch.no_grad():
        features = network(torch.zeros(1, channels, _PROBE, _PROBE))
    network.train(was_training)
    if not isinstance(features, Tensor) or features.ndim not in (2, 4):
        shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise TrunkError(f"trunk {name}: its module returned {shape}; features have the shape (n, c) or (n, c, h, w)")
    return features.shape[1]


def _users_weights(name: str, function: Any) -> Mapping[str, Tensor]:
    """The weights that the function gives the module. They have a hash, so the same call must give the same weights."""
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return _users_trunk(name, function).state_dict()
