"""GoogLeNet (Szegedy et al. 2015) and ResNet-50 and -101 (He et al. 2016) as torchvision builds them.

torchvision is an optional package: it is imported when one of these trunks is built, never before.
"""

from collections import OrderedDict
from itertools import takewhile
from typing import Any

from torch import nn

from protocols.trunks.weights import PublishedFile, TrunkError

# torchvision's own addresses of IMAGENET1K_V1. GoogLeNet's auxiliary heads are in its file, but hold no trained values.
GOOGLENET_FILE = PublishedFile(
    "googlenet", "https://download.pytorch.org/models/googlenet-1378be20.pth", ("fc.", "aux1.", "aux2.")
)
RESNET50_FILE = PublishedFile("resnet50", "https://download.pytorch.org/models/resnet50-0676ba61.pth", ("fc.",))
RESNET101_FILE = PublishedFile("resnet101", "https://download.pytorch.org/models/resnet101-63fe2227.pth", ("fc.",))

# Without the auxiliary heads; the input's format is what the ImageNet weights want, so nothing is left to transform.
# The initialisation is the constructor's default, said aloud because torchvision warns that it may change.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "googlenet": {"aux_logits": False, "transform_input": False, "init_weights": True}
}


class TorchvisionTrunk(nn.Sequential):
    """A network's layers before its pooling and classifier: images (n, 3, h, w) -> last feature map (n, features, ...).

    These networks call their layers in the order of their definition, so a sequence of them, under the same names,
    computes the same and has the same keys.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__(OrderedDict(takewhile(lambda layer: layer[0] != "avgpool", network.named_children())))
        classifier = network.get_submodule("fc")
        assert isinstance(classifier, nn.Linear)
        self.features = classifier.in_features


def torchvision_trunk(name: str) -> TorchvisionTrunk:
    """The trunk with drawn weights; raises TrunkError with one line if torchvision is missing or broken."""
    try:
        from torchvision import models
    except Exception as error:  # A build for another PyTorch fails with errors of several kinds.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise TrunkError(
            f"trunk {name} needs torchvision: pip install torchvision, in the version that belongs to your PyTorch; "
            f"importing it failed ({reason})"
        ) from error
    return TorchvisionTrunk(models.get_model(name, weights=None, **_ARGUMENTS.get(name, {})))
