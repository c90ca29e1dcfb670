"""The trunks by name, with their input formats and ImageNet weights."""

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
from results.training_spec import InputFormat, TrunkSpec

RANDOM = "random"


IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


CAFFE_MEAN = (104.0, 117.0, 128.0)  # Blue, green, red, of pixels in 0..255 (specification, section 3).


@dataclass(frozen=True)
class TrunkEntry:
    """A trunk with its input format and its ImageNet weights, if there are any.

    Attributes:
        build: Builds the trunk with random weights. The trunk's attribute `features` is the number of channels of its
            last feature map.
        input: The input format of its ImageNet weights.
        packaged: Reads ImageNet weights from an installed package.
        published: Published file of ImageNet weights.
        channels_last_on_cpu: Whether the memory layout with the channels last is faster on a CPU. GPUs always use it.
    """

    build: Callable[[], nn.Module]
    input: InputFormat
    packaged: Callable[[], Mapping[str, Tensor]] | None = None
    published: PublishedFile | None = None
    channels_last_on_cpu: bool = True

    @property
    def weights(self) -> tuple[str, ...]:
        """Names of the weights that it can start from; the first is the default."""
        return (IMAGENET, RANDOM) if self.packaged or self.published else (RANDOM,)

    def shapes(self) -> dict[str, torch.Size]:
        """Shapes of the weights by key, without allocating memory and without drawing random numbers."""
        with torch.device("meta"):
            return {key: value.shape for key, value in self.build().state_dict().items()}


_IMAGENET_FORMAT = InputFormat(channels="RGB", mean=IMAGENET_MEAN, std=IMAGENET_STD)


# torchvision's GoogLeNet converts inputs from ImageNet's format to this one (`transform_input`).
_CENTRED_FORMAT = InputFormat(channels="RGB", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))


_CAFFE_FORMAT = InputFormat(channels="BGR", mean=CAFFE_MEAN, std=(1.0, 1.0, 1.0), scale=255.0)


TRUNKS = {
    "small_conv": TrunkEntry(
        SmallConv, InputFormat(channels="grey", mean=(0.5,), std=(0.5,)), channels_last_on_cpu=False
    ),
    "efficientnet_lite0": TrunkEntry(EfficientNetLite0, _IMAGENET_FORMAT, packaged=efficientnet_lite.imagenet_weights),
    "bn_inception": TrunkEntry(BNInception, _CAFFE_FORMAT, published=BN_INCEPTION_FILE),
    "googlenet": TrunkEntry(partial(torchvision_trunk, "googlenet"), _CENTRED_FORMAT, published=GOOGLENET_FILE),
    "resnet50": TrunkEntry(partial(torchvision_trunk, "resnet50"), _IMAGENET_FORMAT, published=RESNET50_FILE),
    "resnet101": TrunkEntry(partial(torchvision_trunk, "resnet101"), _IMAGENET_FORMAT, published=RESNET101_FILE),
}


def trunk_entry(spec: TrunkSpec) -> TrunkEntry:
    """Look up a trunk.

    Raises:
        TrunkError: The name of the trunk or of its weights is unknown, or the trunk has another number of channels than
            the specification's input format.
    """
    if spec.name not in TRUNKS:
        raise TrunkError(f"unknown trunk {spec.name!r}; known are {', '.join(sorted(TRUNKS))}")
    entry = TRUNKS[spec.name]
    if spec.weights not in entry.weights and not (entry.published and names_own_file(spec.weights)):
        raise TrunkError(f"trunk {spec.name}: no weights {spec.weights!r}; known are {', '.join(entry.weights)}")
    chosen = spec.input_format
    if chosen is not None and chosen.n_channels != entry.input.n_channels:
        raise TrunkError(
            f"trunk {spec.name} takes {entry.input.n_channels} channel(s); its input_format has {chosen.n_channels} "
            f"({chosen.channels})"
        )
    return entry


def settled_trunk(spec: TrunkSpec, weights: Path | None = None, progress: Progress | None = None) -> TrunkSpec:
    """Check the weights of a trunk, and download them if they are missing. Call this before any training.

    Trainings only read the weights, so an error about missing or wrong weights comes before any work.

    Args:
        spec: The trunk.
        weights: A weight file, or a folder of files with their published names. This process, and processes that it
            starts later, read the weights from there.
        progress: Receives the progress of a download.

    Returns:
        The trunk with its weights identified by content, which is part of the trainings' fingerprints.

    Raises:
        TrunkError: The trunk is unknown, or its weights are missing or wrong.
    """
    entry = trunk_entry(spec)
    if weights is not None:
        if entry.published is None or spec.weights == RANDOM:
            raise TrunkError(
                f"--weights {weights}: trunk {spec.name} with {spec.weights} weights reads no file; leave out --weights"
            )
        use_weights(weights)
    shapes = entry.shapes()
    if entry.published is None or spec.weights == RANDOM:
        return spec
    return spec.model_copy(update={"weights": settle_weights(entry.published, spec.weights, shapes, progress)})
