"""Trunks by name, and the pooling and the embedder on top: images in, embeddings out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import convert_conv2d_weight_memory_format

from protocols.trunks import efficientnet_lite
from protocols.trunks.bn_inception import BN_INCEPTION_FILE, BNInception
from protocols.trunks.download import Progress
from protocols.trunks.efficientnet_lite import EfficientNetLite0
from protocols.trunks.small_conv import SmallConv
from protocols.trunks.torchvision_trunks import GOOGLENET_FILE, RESNET50_FILE, RESNET101_FILE, torchvision_trunk
from protocols.trunks.weights import IMAGENET, PublishedFile, names_own_file, read_weights, settle_weights, use_weights
from protocols.trunks.weights import TrunkError as TrunkError
from results.specs import FoldSpec, TrunkSpec

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


def _trunk(spec: TrunkSpec, entry: TrunkEntry) -> nn.Module:
    trunk = entry.build()
    if spec.weights != RANDOM and entry.packaged:
        trunk.load_state_dict(entry.packaged())
    elif spec.weights != RANDOM and entry.published:
        shapes = {key: value.shape for key, value in trunk.state_dict().items()}
        trunk.load_state_dict(read_weights(entry.published, spec.weights, shapes))
    return trunk


def model_of(spec: FoldSpec) -> "EmbeddingModel":
    """The model that a training begins with; its random weights come from torch's generator."""
    return EmbeddingModel(
        spec.trunk, spec.embedding_size, embedder_bias=spec.embedder_bias, precision=spec.training.precision
    )


def trained_model(spec: FoldSpec, weights: Mapping[str, Tensor], device: torch.device) -> "EmbeddingModel":
    """The model that a training came to, on `device`; torch's random numbers stay as they were."""
    with torch.random.fork_rng([]):
        model = model_of(spec)
    model.load_state_dict(weights)
    return model.place(device)


class EmbeddingModel(nn.Module):
    """Trunk, pooling and embedder (specification, section 4): uint8 images (n, c, h, w) -> raw embeddings (n, d).

    embedding_size: d of the linear layer; None gives the pooled features. embedder_bias: whether that layer has a bias.
    Grey and RGB images fit any trunk: channels are repeated or averaged. precision: `amp` computes trunk and embedder
    in bfloat16 where torch's autocast says so; the embeddings and all that follows stay float32. bfloat16 has float32's
    range, so gradients need no scaling, which in float16 would skip steps and so change the protocol. Raises TrunkError
    if the trunk's weights are not on this machine.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        spec: TrunkSpec,
        embedding_size: int | None,
        *,
        embedder_bias: bool = True,
        precision: Literal["float32", "amp"] = "float32",
    ) -> None:
        super().__init__()
        self.precision = precision
        self.layout = torch.contiguous_format
        entry = trunk_entry(spec)
        self.trunk = _trunk(spec, entry)
        features = self.trunk.features
        assert isinstance(features, int)
        self.embedder = (
            nn.Identity() if embedding_size is None else nn.Linear(features, embedding_size, bias=embedder_bias)
        )
        self.dimensions = features if embedding_size is None else embedding_size
        self.register_buffer("mean", torch.tensor(entry.input.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(entry.input.std)[:, None, None], persistent=False)
        self.channels = entry.input.channels
        self.scale, self.reverse_channels = entry.input.scale, entry.input.reverse_channels
        self.batch_norm, self.pooling = spec.batch_norm, spec.pooling
        if spec.batch_norm == "frozen":
            for layer in self._batch_norms():
                layer.requires_grad_(False)

    def place(self, device: torch.device, *, channels_last: bool | None = None) -> "EmbeddingModel":
        """Moves the model; channels_last: the layout that GPUs convolve fastest in, None takes it on a GPU only."""
        if device.type == "cuda" if channels_last is None else channels_last:
            self.layout = torch.channels_last
            convert_conv2d_weight_memory_format(self, self.layout)
        return self.to(device)

    def _batch_norms(self) -> list[nn.Module]:
        return [m for m in self.trunk.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]

    def train(self, mode: bool = True) -> "EmbeddingModel":
        """Training mode; the running statistics of batch normalisation stay fixed unless they are to train."""
        super().train(mode)
        if self.batch_norm != "training":
            for layer in self._batch_norms():
                layer.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Raw embeddings (n, d) of uint8 images (n, channels, height, width)."""
        pixels = images.to(self.mean.dtype) / 255
        if pixels.shape[1] != self.channels:
            pixels = pixels.mean(1, keepdim=True) if self.channels == 1 else pixels.expand(-1, self.channels, -1, -1)
        if self.reverse_channels:
            pixels = pixels.flip(1)
        pixels = ((pixels * self.scale - self.mean) / self.std).contiguous(memory_format=self.layout)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.precision == "amp"):
            embeddings: Tensor = self.embedder(self._pooled(self.trunk(pixels)))
        return embeddings.to(self.mean.dtype)

    def _pooled(self, feature_map: Tensor) -> Tensor:
        """(n, c, h, w) -> (n, c)."""
        average = feature_map.mean((2, 3))
        # Not torch's adaptive max pooling, whose gradient is not deterministic on a GPU.
        return average if self.pooling == "average" else average + feature_map.amax((2, 3))
