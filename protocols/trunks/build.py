"""Trunks by name, and the embedder on top: images in, embeddings out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import convert_conv2d_weight_memory_format

from protocols.trunks import bn_inception, efficientnet_lite
from protocols.trunks.bn_inception import BNInception
from protocols.trunks.efficientnet_lite import EfficientNetLite0
from protocols.trunks.small_conv import SmallConv
from protocols.trunks.weights import TrunkError as TrunkError
from results.specs import TrunkSpec

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


def _needs_no_file(weights: str) -> None:
    """The check of a trunk whose weights are drawn or come with a package."""


@dataclass(frozen=True)
class TrunkEntry:
    """A trunk, its input and the weights it can start from, the first being the default.

    check: raises TrunkError if the named weights would have to come from a file that is not there or does not fit.
    """

    build: Callable[[str], nn.Module]
    input: InputFormat
    weights: tuple[str, ...]
    check: Callable[[str], None] = _needs_no_file


def _small_conv(weights: str) -> nn.Module:
    return SmallConv()


def _efficientnet_lite0(weights: str) -> nn.Module:
    trunk = EfficientNetLite0()
    if weights == "imagenet":
        trunk.load_state_dict(efficientnet_lite.imagenet_weights())
    return trunk


def _bn_inception(weights: str) -> nn.Module:
    trunk = BNInception()
    if weights == "imagenet":
        trunk.load_state_dict(bn_inception.imagenet_weights())
    return trunk


def _check_bn_inception(weights: str) -> None:
    if weights == "imagenet":
        bn_inception.imagenet_weights()


TRUNKS = {
    "small_conv": TrunkEntry(_small_conv, InputFormat(1, (0.5,), (0.5,)), ("random",)),
    "efficientnet_lite0": TrunkEntry(
        _efficientnet_lite0, InputFormat(3, IMAGENET_MEAN, IMAGENET_STD), ("imagenet", "random")
    ),
    "bn_inception": TrunkEntry(
        _bn_inception,
        InputFormat(3, CAFFE_MEAN, (1.0, 1.0, 1.0), scale=255.0, reverse_channels=True),
        ("imagenet", "random"),
        _check_bn_inception,
    ),
}


def trunk_entry(spec: TrunkSpec) -> TrunkEntry:
    """The entry of a trunk that can be built: raises TrunkError for unknown names and for weights that are missing.

    To be asked when a session opens, so that a missing file is told before any work.
    """
    entry = _known_entry(spec)
    entry.check(spec.weights)
    return entry


def _known_entry(spec: TrunkSpec) -> TrunkEntry:
    if spec.name not in TRUNKS:
        raise TrunkError(f"unknown trunk {spec.name!r}; known are {', '.join(sorted(TRUNKS))}")
    entry = TRUNKS[spec.name]
    if spec.weights not in entry.weights:
        raise TrunkError(f"trunk {spec.name}: no weights {spec.weights!r}; known are {', '.join(entry.weights)}")
    return entry


class EmbeddingModel(nn.Module):
    """Trunk and embedder (specification, section 4): uint8 images (n, c, h, w) -> raw embeddings (n, d).

    embedding_size: d of the linear layer; None gives the trunk's features. Grey and RGB images fit any trunk: channels
    are repeated or averaged. precision: `amp` computes trunk and embedder in bfloat16 where torch's autocast says so;
    the embeddings and all that follows stay float32. bfloat16 has float32's range, so gradients need no scaling, which
    in float16 would skip steps and so change the protocol.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, spec: TrunkSpec, embedding_size: int | None, *, precision: Literal["float32", "amp"] = "float32"
    ) -> None:
        super().__init__()
        self.precision = precision
        self.layout = torch.contiguous_format
        entry = _known_entry(spec)
        self.trunk = entry.build(spec.weights)
        features = self.trunk.features
        assert isinstance(features, int)
        self.embedder = nn.Identity() if embedding_size is None else nn.Linear(features, embedding_size)
        self.dimensions = features if embedding_size is None else embedding_size
        self.register_buffer("mean", torch.tensor(entry.input.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(entry.input.std)[:, None, None], persistent=False)
        self.channels = entry.input.channels
        self.scale, self.reverse_channels = entry.input.scale, entry.input.reverse_channels
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
        """Training mode with the running statistics of batch normalisation fixed (specification, section 4)."""
        super().train(mode)
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
            embeddings: Tensor = self.embedder(self.trunk(pixels))
        return embeddings.to(self.mean.dtype)
