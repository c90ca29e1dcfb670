"""The embedding model: a trunk with pooling and embedder, which maps images to embeddings."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import convert_conv2d_weight_memory_format

from protocols.trunks.trunk_registry import RANDOM, TrunkEntry, trunk_entry
from protocols.trunks.weights import read_weights
from results.training_spec import FoldSpec, TrunkSpec


def _trunk(spec: TrunkSpec, entry: TrunkEntry) -> nn.Module:
    """The trunk with the weights of its specification."""
    trunk = entry.build()
    if spec.weights != RANDOM and entry.packaged:
        trunk.load_state_dict(entry.packaged())
    elif spec.weights != RANDOM and entry.published:
        shapes = {key: value.shape for key, value in trunk.state_dict().items()}
        trunk.load_state_dict(read_weights(entry.published, spec.weights, shapes))
    return trunk


def model_of(spec: FoldSpec) -> "EmbeddingModel":
    """Build the model at the start of a training; torch's global generator draws its random weights."""
    return EmbeddingModel(
        spec.trunk, spec.embedding_size, embedder_bias=spec.embedder_bias, precision=spec.training.precision
    )


def without_published_weights(spec: FoldSpec) -> FoldSpec:
    """Replace the trunk's weights by random ones, so that building a trained model needs no weight file."""
    return spec.model_copy(update={"trunk": spec.trunk.model_copy(update={"weights": RANDOM})})


def trained_model(spec: FoldSpec, weights: Mapping[str, Tensor], device: torch.device) -> "EmbeddingModel":
    """Build the model of a finished training.

    Args:
        spec: The specification of the training.
        weights: State dict of the trained model.
        device: The device to put the model on.

    Returns:
        The model. The state of torch's random generators does not change.
    """
    with torch.random.fork_rng([]):
        model = model_of(spec)
    model.load_state_dict(weights)
    return model.place(device)


class EmbeddingModel(nn.Module):
    """Trunk, pooling and embedder (specification, section 4): uint8 images (n, c, h, w) to raw embeddings (n, d).

    Grey and RGB images fit any trunk: channels are repeated or averaged.

    With precision `amp`, torch's autocast computes trunk and embedder in bfloat16; embeddings and loss stay float32.
    bfloat16 has the range of float32, so gradients need no scaling. Scaling, as for float16, would skip some steps and
    so change the protocol.

    Args:
        spec: The trunk, its weights, input format, batch normalisation and pooling.
        embedding_size: Output dimensions d of the embedder's linear layer; None gives the pooled features.
        embedder_bias: Whether the linear layer has a bias.
        precision: `float32`, or `amp` for mixed precision.

    Raises:
        TrunkError: The trunk or its weights are not on this machine.
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
        self._channels_last_on_cpu = entry.channels_last_on_cpu
        self.trunk = _trunk(spec, entry)
        features = self.trunk.features
        assert isinstance(features, int)
        self.embedder = (
            nn.Identity() if embedding_size is None else nn.Linear(features, embedding_size, bias=embedder_bias)
        )
        self.dimensions = features if embedding_size is None else embedding_size
        pixels = spec.input_format or entry.input
        self.register_buffer("mean", torch.tensor(pixels.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(pixels.std)[:, None, None], persistent=False)
        self.channels, self.scale = pixels.n_channels, pixels.scale
        self.reverse_channels = pixels.channels == "BGR"
        self.batch_norm, self.pooling = spec.batch_norm, spec.pooling
        for layer in self._batch_norms():
            if spec.batch_norm == "frozen":
                layer.requires_grad_(False)
            if spec.batch_norm_momentum is not None:
                layer.momentum = spec.batch_norm_momentum

    def place(self, device: torch.device, *, channels_last: bool | None = None) -> "EmbeddingModel":
        """Move the model to a device.

        Args:
            device: The device.
            channels_last: Whether to use the memory layout with the channels last. None means on a GPU, and on a CPU
                if the trunk's convolutions are faster with it.
        """
        if channels_last is None:
            channels_last = device.type == "cuda" or self._channels_last_on_cpu
        if channels_last:
            self.layout = torch.channels_last
            convert_conv2d_weight_memory_format(self, self.layout)
        return self.to(device)

    def _batch_norms(self) -> list[_BatchNorm]:
        return [module for module in self.trunk.modules() if isinstance(module, _BatchNorm)]

    def train(self, mode: bool = True) -> "EmbeddingModel":
        """Set training mode; running statistics of batch normalisation stay fixed unless `batch_norm` is `training`."""
        super().train(mode)
        if self.batch_norm != "training":
            for layer in self._batch_norms():
                layer.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Compute raw embeddings (n, d) of uint8 images (n, channels, height, width)."""
        pixels = self._pixels(images)
        with self._arithmetic(images.device):
            embeddings: Tensor = self.embedder(self._pooled(self.trunk(pixels)))
        return embeddings.to(self.mean.dtype)

    def features(self, images: Tensor) -> Tensor:
        """Compute the trunk's pooled features (n, c) of uint8 images (n, channels, height, width)."""
        pixels = self._pixels(images)
        with self._arithmetic(images.device):
            features = self._pooled(self.trunk(pixels))
        return features.to(self.mean.dtype)

    def _pixels(self, images: Tensor) -> Tensor:
        """The trunk's input: channels, range and normalisation as its weights were trained with."""
        pixels = images.to(self.mean.dtype) / 255
        if pixels.shape[1] != self.channels:
            pixels = pixels.mean(1, keepdim=True) if self.channels == 1 else pixels.expand(-1, self.channels, -1, -1)
        if self.reverse_channels:
            pixels = pixels.flip(1)
        return ((pixels * self.scale - self.mean) / self.std).contiguous(memory_format=self.layout)

    def _arithmetic(self, device: torch.device) -> torch.autocast:
        return torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "amp")

    def _pooled(self, feature_map: Tensor) -> Tensor:
        """Pool a feature map (n, c, h, w) to (n, c)."""
        average = feature_map.mean((2, 3))
        # amax, because the gradient of torch's adaptive max pooling is not deterministic on a GPU.
        return average if self.pooling == "average" else average + feature_map.amax((2, 3))
