"""An entry of the trunk registry: how a trunk is built, its input format, and the weights that it can start from."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from protocols.trunks.weights import IMAGENET, Shapes, WeightFile, names_own_file
from results.spec.trunk_spec import PRETRAINED, WEIGHT_FILES, InputFormat

RANDOM = "random"
_IDENTIFIED = re.compile(rf"{PRETRAINED} \(sha256 [0-9a-f]{{16}}\)")


@dataclass(frozen=True)
class TrunkEntry:
    """A trunk with its input format and its weights.

    Attributes:
        build: Builds the trunk with random weights. The trunk's attribute `features` is the number of channels of its
            last feature map, or of its features.
        input: The input format of its weights.
        packaged: Reads ImageNet weights from an installed package.
        pretrained: Returns the state dict of the weights that a library, or the file that builds the trunk, brings.
        file: How a file of weights is read, the published one of ImageNet weights or a user's; None reads no file.
        channels_last_on_cpu: Whether the memory layout with the channels last is faster on a CPU. GPUs always use it.
        outside: Whether a library or a user's file builds the trunk. It can give pooled features instead of a map.
        note: What the user should know about its weights.
    """

    build: Callable[[], nn.Module]
    input: InputFormat
    packaged: Callable[[], Mapping[str, Tensor]] | None = None
    pretrained: Callable[[], Mapping[str, Tensor]] | None = None
    file: WeightFile | None = None
    channels_last_on_cpu: bool = True
    outside: bool = False
    note: str = ""

    @property
    def weights(self) -> tuple[str, ...]:
        """Names of the weights that it can start from; the first is the default."""
        imagenet = (IMAGENET,) if self.packaged or (self.file and self.file.url) else ()
        return (*imagenet, *((PRETRAINED,) if self.pretrained else ()), RANDOM)

    def accepts(self, weights: str) -> bool:
        """Whether a specification can have these weights: a name, a path, or what an identified trunk has."""
        return (
            weights in self.weights
            or (self.pretrained is not None and is_identified(weights))
            or (self.file is not None and (names_own_file(weights) or is_path(weights)))
        )

    def shapes(self) -> Shapes:
        """Shapes of the weights by key, without drawing random numbers."""
        return _outline(self)[0]

    @property
    def width(self) -> int:
        """Number of features of an image."""
        return _outline(self)[1]


@cache
def _outline(entry: TrunkEntry) -> tuple[Shapes, int]:
    # A library or a user's file may compute with its weights, which is impossible without memory for them.
    with torch.random.fork_rng([]), torch.device("cpu" if entry.outside else "meta"):
        trunk = entry.build()
    features = trunk.features
    assert isinstance(features, int)
    return {key: value.shape for key, value in trunk.state_dict().items()}, features


class OutsideTrunk(nn.Module):
    """A network that a library or a user's file built: images to pooled features (n, features), or to a feature map."""

    def __init__(self, network: nn.Module, features: int) -> None:
        super().__init__()
        self.network, self.features = network, features

    def forward(self, images: Tensor) -> Tensor:
        """Compute the features."""
        features: Tensor = self.network(images)
        return features


def is_path(weights: str) -> bool:
    """Whether weights are given as the path of a file."""
    return Path(weights).suffix in WEIGHT_FILES


def identified(weights: Mapping[str, Tensor]) -> str:
    """Name pretrained weights by their content, such as `pretrained (sha256 0123456789abcdef)`.

    The content is that of the state dict: keys, types, shapes and values.
    """
    digest = hashlib.sha256()
    for key in sorted(weights):
        value = weights[key].detach().cpu().contiguous()
        digest.update(f"{key} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return f"{PRETRAINED} (sha256 {digest.hexdigest()[:16]})"


def is_identified(weights: str) -> bool:
    """Whether `identified` has named these weights."""
    return _IDENTIFIED.fullmatch(weights) is not None
