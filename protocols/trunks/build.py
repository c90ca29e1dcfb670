"""Trunks by name, and the embedder on top: images in, embeddings out."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protocols.trunks.efficientnet_lite import EfficientNetLite0, imagenet_weights
from protocols.trunks.small_conv import SmallConv
from results.records import TrunkSpec

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class TrunkError(ValueError):
    """A trunk or its weights are not to be had."""


@dataclass(frozen=True)
class InputFormat:
    """How pixels in 0..1 become a trunk's input: (pixel - mean) / std per channel."""

    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class TrunkEntry:
    """A trunk, its input and the weights it can start from, the first being the default."""

    build: Callable[[str], nn.Module]
    input: InputFormat
    weights: tuple[str, ...]


def _small_conv(weights: str) -> nn.Module:
    return SmallConv()


def _efficientnet_lite0(weights: str) -> nn.Module:
    trunk = EfficientNetLite0()
    if weights == "imagenet":
        trunk.load_state_dict(imagenet_weights())
    return trunk


TRUNKS = {
    "small_conv": TrunkEntry(_small_conv, InputFormat(1, (0.5,), (0.5,)), ("random",)),
    "efficientnet_lite0": TrunkEntry(
        _efficientnet_lite0, InputFormat(3, IMAGENET_MEAN, IMAGENET_STD), ("imagenet", "random")
    ),
}


def trunk_entry(spec: TrunkSpec) -> TrunkEntry:
    """The entry of a trunk; raises TrunkError for an unknown name or weights it does not have."""
    if spec.name not in TRUNKS:
        raise TrunkError(f"unknown trunk {spec.name!r}; known are {', '.join(sorted(TRUNKS))}")
    entry = TRUNKS[spec.name]
    if spec.weights not in entry.weights:
        raise TrunkError(f"trunk {spec.name}: no weights {spec.weights!r}; known are {', '.join(entry.weights)}")
    return entry


class EmbeddingModel(nn.Module):
    """Trunk and embedder (specification, section 4): uint8 images (n, c, h, w) -> raw embeddings (n, d).

    embedding_size: d of the linear layer; None gives the trunk's features. Grey and RGB images fit any trunk: channels
    are repeated or averaged.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, spec: TrunkSpec, embedding_size: int | None) -> None:
        super().__init__()
        entry = trunk_entry(spec)
        self.trunk = entry.build(spec.weights)
        features = self.trunk.features
        assert isinstance(features, int)
        self.embedder = nn.Identity() if embedding_size is None else nn.Linear(features, embedding_size)
        self.dimensions = features if embedding_size is None else embedding_size
        self.register_buffer("mean", torch.tensor(entry.input.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(entry.input.std)[:, None, None], persistent=False)
        self.channels = entry.input.channels
        if spec.batch_norm == "frozen":
            for layer in self._batch_norms():
                layer.requires_grad_(False)

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
        embeddings: Tensor = self.embedder(self.trunk((pixels - self.mean) / self.std))
        return embeddings
