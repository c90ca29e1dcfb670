"""GoogLeNet (Szegedy et al. 2015), ResNet-50 and ResNet-101 (He et al. 2016) from torchvision.

torchvision is an optional package. It is imported only when one of these trunks is built.
"""

from collections import OrderedDict
from itertools import takewhile
from typing import Any

from torch import nn

from protocols.trunks.weights import TrunkError, WeightFile

# torchvision's addresses of IMAGENET1K_V1. GoogLeNet's file contains auxiliary heads, but without trained values.
GOOGLENET_FILE = WeightFile(
    "googlenet", "https://download.pytorch.org/models/googlenet-1378be20.pth", ("fc.", "aux1.", "aux2.")
)
RESNET50_FILE = WeightFile("resnet50", "https://download.pytorch.org/models/resnet50-0676ba61.pth", ("fc.",))
RESNET101_FILE = WeightFile("resnet101", "https://download.pytorch.org/models/resnet101-63fe2227.pth", ("fc.",))

# No auxiliary heads. No `transform_input`, because the images already have the format that the ImageNet weights need.
# The initialisation is the default; it is given because torchvision warns that the default may change.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "googlenet": {"aux_logits": False, "transform_input": False, "init_weights": True}
}


class TorchvisionTrunk(nn.Sequential):
    """The layers of a network before its pooling and classifier: images (n, 3, h, w) to features (n, features, ...).

    These networks call their layers in the order of their definition. So a sequence of the layers, with the same names,
    computes the same features and has the same keys.

    Args:
        network: A torchvision network with the layers `avgpool` and `fc`.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__(OrderedDict(takewhile(lambda layer: layer[0] != "avgpool", network.named_children())))
        classifier = network.get_submodule("fc")
        assert isinstance(classifier, nn.Linear)
        self.features = classifier.in_features


def torchvision_trunk(name: str) -> TorchvisionTrunk:
    """Build a trunk with random weights.

    Args:
        name: torchvision's name of the network, such as `resnet50`.

    Raises:
        TrunkError: torchvision is missing or cannot be imported.
    """
    try:
        from torchvision import models
    except Exception as error:  # torchvision for another PyTorch raises different errors.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise TrunkError(
            f"trunk {name} needs torchvision: pip install torchvision, in the version that belongs to your PyTorch; "
            f"importing it failed ({reason})"
        ) from error
    return TorchvisionTrunk(models.get_model(name, weights=None, **_ARGUMENTS.get(name, {})))
