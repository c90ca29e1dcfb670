"""The embedding model: a trunk with pooling and embedder, which maps images to embeddings."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import convert_conv2d_weight_memory_format

from protocols.datasets.splits import classes_of
from protocols.images.samples import EvaluationBatches
from protocols.trunks.bn_inception import BNInception
from protocols.trunks.trunk_entry import RANDOM, TrunkError
from protocols.trunks.trunk_registry import trunk_entry
from results.spec.conditions import Precision
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import EmbedderSpec, TrunkSpec
from results.wording import first_line


def model_of(spec: FoldSpec) -> "EmbeddingModel":
    """Build the model at the start of a training; torch's global generator draws its random weights."""
    return EmbeddingModel(
        spec.conditions.trunk,
        embedding_size_of(spec) if spec.has_embedder else None,
        on_features=spec.conditions.trunk.is_input_features,
        embedder_bias=spec.embedder_bias,
        precision=spec.conditions.training.precision,
        embedder=spec.embedder,
    )


def embedding_size_of(spec: FoldSpec) -> int:
    """Return the dimensions of a training's embeddings: those of the conditions, or as many as there are features.

    The row `lda` has fewer if there are fewer discriminants, which is one less than there are training classes.
    """
    size = spec.conditions.embedding_size
    if size is None or not spec.method.has_embedding_size:
        size = trunk_width(spec.conditions.trunk)
    is_lda = spec.method.loss is None and spec.embedder.init == "lda"
    return min(size, len(classes_of(spec).train) - 1) if is_lda else size


def with_trunk(spec: FoldSpec) -> FoldSpec:
    """Return the specification of a model that maps images to embeddings: a frozen trunk becomes a part of it again."""
    return spec.with_conditions(trunk=spec.conditions.trunk.model_copy(update={"frozen": False}))


def weights_with_trunk(spec: FoldSpec, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a model's state dict together with that of its frozen trunk, so that the model can embed images."""
    if not spec.conditions.trunk.frozen:
        return dict(weights)
    with torch.random.fork_rng([]):
        model = model_of(with_trunk(spec))
    return {**model.state_dict(), **weights}


_STARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "kaiming_fan_out": partial(nn.init.kaiming_normal_, mode="fan_out"),
    "glorot_uniform": nn.init.xavier_uniform_,
}


def _embedder(width: int, size: int, spec: EmbedderSpec, bias: bool) -> nn.Module:
    """A linear layer, or linear layers with ReLU between them, (n, width) to (n, size)."""
    last = nn.Linear((width, *spec.hidden)[-1], size, bias=bias)
    hidden = [layer for sides in pairwise((width, *spec.hidden)) for layer in (nn.Linear(*sides), nn.ReLU())]
    if spec.init in _STARTS:
        for layer in (*hidden, last):
            if isinstance(layer, nn.Linear):
                _STARTS[spec.init](layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
    return nn.Sequential(*hidden, last) if hidden else last


def without_published_weights(spec: FoldSpec) -> FoldSpec:
    """Replace the trunk's weights by random ones, so that building a trained model needs no weight file."""
    return spec.with_conditions(trunk=spec.conditions.trunk.model_copy(update={"weights": RANDOM}))


def trained_model(spec: FoldSpec, weights: Mapping[str, Tensor], device: torch.device) -> "EmbeddingModel":
    """Build the model of a finished training."""
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
        precision: `amp` for mixed precision. `float32` and `ieee` differ in settings of the process only.
        embedder: Hidden layers of the embedder, and whether it gets features of length 1.
        on_features: Whether the inputs are features (n, c), which are computed already. Of the trunk only their number
            matters; no weights are read.

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
        precision: Precision = "float32",
        embedder: EmbedderSpec | None = None,
        on_features: bool = False,
    ) -> None:
        super().__init__()
        self.precision, self.on_features = precision, on_features
        self.layout = torch.contiguous_format
        self.channels_last_on_cpu = False
        self.trunk: nn.Module = nn.Identity()
        self.batch_norm, self.pooling = spec.batch_norm, spec.pooling
        if on_features:
            features = trunk_width(spec)
            self.register_buffer("mean", torch.zeros(()), persistent=False)
        else:
            features = self._add_trunk(spec)
        self.embedder: nn.Module = nn.Identity()
        embedder = embedder or EmbedderSpec()
        self.normalizes = embedder.normalize
        if embedding_size is not None:
            self.embedder = _embedder(features, embedding_size, embedder, embedder_bias)
        self.dimensions = features if embedding_size is None else embedding_size

    def _add_trunk(self, spec: TrunkSpec) -> int:
        entry = trunk_entry(spec)
        self.channels_last_on_cpu = entry.channels_last_on_cpu
        self.trunk = entry.starting_from(spec.name, spec.weights)
        features = self.trunk.features
        assert isinstance(features, int)
        pixels = spec.input_format or entry.input
        self.register_buffer("mean", torch.tensor(pixels.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(pixels.std)[:, None, None], persistent=False)
        self.channels, self.scale = pixels.n_channels, pixels.scale
        self.reverse_channels = pixels.channels == "BGR"
        for layer in self._batch_norms():
            if spec.batch_norm == "frozen":
                layer.requires_grad_(False)
            if spec.batch_norm_momentum is not None:
                layer.momentum = spec.batch_norm_momentum
        return features

    def place(self, device: torch.device) -> "EmbeddingModel":
        """Move the model to a device, with the channels last in memory where convolutions are faster so."""
        if device.type == "cuda" or self.channels_last_on_cpu:
            self.layout = torch.channels_last
            convert_conv2d_weight_memory_format(self, self.layout)
        if isinstance(self.trunk, BNInception):
            self.trunk.merges_layers = device.type == "cuda" and self.batch_norm != "training"
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
        if self.on_features and isinstance(self.embedder, nn.Identity):
            return images  # torch.export takes no region of autocast without an operation.
        return self._computed(images, self.embedder)

    def features(self, images: Tensor) -> Tensor:
        """Compute what the embedder gets of uint8 images (n, channels, height, width): pooled features (n, c)."""
        return self._computed(images, nn.Identity())

    def _computed(self, images: Tensor, head: nn.Module) -> Tensor:
        pixels = self._pixels(images)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.precision == "amp"):
            pooled = self._pooled(self.trunk(pixels))
            output: Tensor = head(functional.normalize(pooled) if self.normalizes else pooled)
        return output.to(self.mean.dtype)

    def _pixels(self, images: Tensor) -> Tensor:
        """The trunk's input: channels, range and normalisation as its weights were trained with."""
        if self.on_features:
            return images
        pixels = images.to(self.mean.dtype) / 255
        if pixels.shape[1] != self.channels:
            pixels = pixels.mean(1, keepdim=True) if self.channels == 1 else pixels.expand(-1, self.channels, -1, -1)
        if self.reverse_channels:
            pixels = pixels.flip(1)
        return ((pixels * self.scale - self.mean) / self.std).contiguous(memory_format=self.layout)

    def _pooled(self, feature_map: Tensor) -> Tensor:
        """Pool a feature map (n, c, h, w) to (n, c); pooled features stay as they are."""
        if self.on_features:
            return feature_map
        if feature_map.ndim == 2:  # The trunk has pooled them.
            if self.pooling != "average":
                raise TrunkError(f"pooling: {self.pooling} needs a feature map, but the trunk gives pooled features")
            return feature_map
        average = feature_map.mean((2, 3))
        # amax, because the gradient of torch's adaptive max pooling is not deterministic on a GPU.
        return average if self.pooling == "average" else average + feature_map.amax((2, 3))


def embed_crops(model: EmbeddingModel, crops: EvaluationBatches) -> Tensor:
    """Embed crops in evaluation mode; returns raw embeddings (n, d) in their order."""
    return torch.cat(list(in_parts(model, model, crops)))


@torch.no_grad()
def in_parts(model: EmbeddingModel, compute: Callable[[Tensor], Tensor], crops: EvaluationBatches) -> Iterator[Tensor]:
    """Yield what a function of a model computes of crops in evaluation mode: one tensor (k, d) for each batch."""
    was_training = model.training
    model.eval()
    yield from map(compute, crops.batches())
    model.train(was_training)


def trunk_width(spec: TrunkSpec) -> int:
    """Return the number of features of a trunk, or of a row of features where there is no trunk."""
    return trunk_entry(spec).width if spec.width is None else spec.width


def check_images_fit(spec: TrunkSpec, crop: int) -> None:
    """Compute one image with a library's or a user's trunk, so that a wrong size is reported before any training.

    Args:
        crop: Side of the images in pixels.
    """
    if not trunk_entry(spec).outside:
        return
    with torch.random.fork_rng([]), torch.no_grad():
        model = EmbeddingModel(spec, None).eval()
        try:
            images = torch.zeros(1, model.channels, crop, crop, dtype=torch.uint8)
            features = model._pooled(model.trunk(model._pixels(images)))
        except TrunkError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise TrunkError(
                f"trunk {spec.name}: cannot compute images of {crop} x {crop} pixels ({reason}); change images.crop"
            ) from error
    # A frozen trunk's features are converted before they are kept.
    if features.shape != (1, model.dimensions) or not (spec.frozen or features.dtype == torch.float32):
        raise TrunkError(
            f"trunk {spec.name}: gives features of the shape {tuple(features.shape)} in {features.dtype} for one "
            f"image, not {(1, model.dimensions)} in torch.float32"
        )
