"""Trunks from libraries: the papers' networks of torchvision, and any of timm, as in `timm:vit_base_patch14_dinov2`.

Both libraries are optional packages, imported only when one of their trunks is named.
"""

import importlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import takewhile
from typing import Any

from torch import Tensor, nn

from protocols.trunks.trunk_entry import OutsideTrunk, TrunkEntry
from protocols.trunks.weights import TrunkError, WeightFile
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
    models = _library("torchvision", name).models
    return TorchvisionTrunk(models.get_model(name, weights=None, **(_OF_GOOGLENET if name == "googlenet" else {})))


@cache
def timm_entry(name: str) -> TrunkEntry:
    """Look up a trunk of timm."""
    timm = _library("timm", f"timm:{name}")
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


def _library(package: str, trunk: str) -> Any:
    """Import a library; a package for another PyTorch raises different errors."""
    try:
        return importlib.import_module(package)
    except Exception as error:
        raise TrunkError(
            f"trunk {trunk} needs the package {package}: pip install -e '.[{package}]', in the version that belongs to "
            f"your PyTorch; importing it failed ({type(error).__name__}: {first_line(error)})"
        ) from error


def _timm_trunk(name: str, *, pretrained: bool = False) -> OutsideTrunk:
    timm = _library("timm", f"timm:{name}")
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
