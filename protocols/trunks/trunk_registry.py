"""The trunks by name, with their input formats and their ImageNet weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from protocols.progress import Progress
from protocols.trunks import efficientnet_lite
from protocols.trunks.bn_inception import BN_INCEPTION_FILE, BNInception
from protocols.trunks.efficientnet_lite import EfficientNetLite0
from protocols.trunks.small_conv import SmallConv
from protocols.trunks.torchvision_trunks import GOOGLENET_FILE, RESNET50_FILE, RESNET101_FILE, torchvision_trunk
from protocols.trunks.weights import IMAGENET, PublishedFile, TrunkError, names_own_file, settle_weights, use_weights
from results.training_spec import TrunkSpec

RANDOM = "random"


IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


CAFFE_MEAN = (104.0, 117.0, 128.0)  # Blue, green, red, of pixels in 0..255 (specification, section 3).


@dataclass(frozen=True)
class InputFormat:
    """How pixels in 0..1 become a trunk's input: (pixel * scale - mean) / std per channel.

    reverse_channels: RGB becomes BGR, and mean and std are in that order.
    """

    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float = 1.0
    reverse_channels: bool = False


@dataclass(frozen=True)
class TrunkEntry:
    """A trunk, its input and its ImageNet weights: from an installed package, from a published file, or none.

    build: the trunk with drawn weights; its attribute `features` says how many channels the last feature map has.
    """

    build: Callable[[], nn.Module]
    input: InputFormat
    packaged: Callable[[], Mapping[str, Tensor]] | None = None
    published: PublishedFile | None = None

    @property
    def weights(self) -> tuple[str, ...]:
        """Names of the weights that it can start from, the first being the default."""
        return (IMAGENET, RANDOM) if self.packaged or self.published else (RANDOM,)

    def shapes(self) -> dict[str, torch.Size]:
        """Shapes of the weights by key; no memory is taken and nothing drawn from the random generator."""
        with torch.device("meta"):
            return {key: value.shape for key, value in self.build().state_dict().items()}


_IMAGENET_FORMAT = InputFormat(3, IMAGENET_MEAN, IMAGENET_STD)


# What torchvision's GoogLeNet makes of an input in ImageNet's format (`transform_input`), for its ImageNet weights.
_CENTRED_FORMAT = InputFormat(3, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


_CAFFE_FORMAT = InputFormat(3, CAFFE_MEAN, (1.0, 1.0, 1.0), scale=255.0, reverse_channels=True)


TRUNKS = {
    "small_conv": TrunkEntry(SmallConv, InputFormat(1, (0.5,), (0.5,))),
    "efficientnet_lite0": TrunkEntry(EfficientNetLite0, _IMAGENET_FORMAT, packaged=efficientnet_lite.imagenet_weights),
    "bn_inception": TrunkEntry(BNInception, _CAFFE_FORMAT, published=BN_INCEPTION_FILE),
    "googlenet": TrunkEntry(partial(torchvision_trunk, "googlenet"), _CENTRED_FORMAT, published=GOOGLENET_FILE),
    "resnet50": TrunkEntry(partial(torchvision_trunk, "resnet50"), _IMAGENET_FORMAT, published=RESNET50_FILE),
    "resnet101": TrunkEntry(partial(torchvision_trunk, "resnet101"), _IMAGENET_FORMAT, published=RESNET101_FILE),
}


def trunk_entry(spec: TrunkSpec) -> TrunkEntry:
    """The entry of a trunk; raises TrunkError for names of trunks and weights that are not known."""
    if spec.name not in TRUNKS:
        raise TrunkError(f"unknown trunk {spec.name!r}; known are {', '.join(sorted(TRUNKS))}")
    entry = TRUNKS[spec.name]
    if spec.weights not in entry.weights and not (entry.published and names_own_file(spec.weights)):
        raise TrunkError(f"trunk {spec.name}: no weights {spec.weights!r}; known are {', '.join(entry.weights)}")
    return entry


def settled_trunk(spec: TrunkSpec, weights: Path | None = None, progress: Progress | None = None) -> TrunkSpec:
    """The trunk as this machine has it, with its weights fetched if need be and checked: what trainings are named by.

    To be asked when a session opens, so that whatever is missing is told before any work; trainings then only read.
    weights: the file, or the folder with files under their published names, that the weights are to come from, here
    and in processes started from now on. Raises TrunkError.
    """
    entry = trunk_entry(spec)
    if weights is not None:
        if entry.published is None or spec.weights == RANDOM:
            raise TrunkError(f"--weights {weights}: trunk {spec.name} with {spec.weights} weights reads no file")
        use_weights(weights)
    shapes = entry.shapes()
    if entry.published is None or spec.weights == RANDOM:
        return spec
    return spec.model_copy(update={"weights": settle_weights(entry.published, spec.weights, shapes, progress)})
