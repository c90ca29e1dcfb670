"""The network of a training: its trunk with the input format, and the embedder behind it."""

from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, model_validator

from results.values import FREE, TRAINED_TRUNK, Record, optional

PRETRAINED = "pretrained"
"""The weights that a library, or a user's file, gives a trunk."""

WEIGHT_FILES = frozenset({".pth", ".pt", ".bin", ".safetensors"})
"""Endings of files with weights."""

NO_TRUNK = "none"
"""Name of the trunk where the dataset has features and no images."""

_WHITENED = ("whitened_pca", "within_class_whitening", "lda")
"""The closed forms that invert a covariance, which `shrinkage` makes invertible."""


class InputFormat(Record):
    """The numbers that a trunk gets for an image: each channel is (pixel * scale - mean) / std, with pixels in 0..1.

    Attributes:
        channels: Order of the channels. `grey` is one channel, the mean of the three colours.
        mean: Mean of each channel, in the order of `channels`.
        scale: Factor of the pixels; with 255 they are in 0..255.
    """

    channels: Literal["RGB", "BGR", "grey"]
    mean: tuple[FiniteFloat, ...]
    std: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...]
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return 1 if self.channels == "grey" else 3

    @model_validator(mode="after")
    def _one_value_per_channel(self) -> "InputFormat":
        if not len(self.mean) == len(self.std) == self.n_channels:
            raise ValueError(f"mean and std need one value for each channel of {self.channels}")
        return self


class TrunkSpec(Record):
    """The trunk, its weights, its input, and which part of its batch normalization trains.

    Attributes:
        weights: Identity of the weights. The default is `imagenet`, or `pretrained` for a trunk of a library or of a
            user's file.
        batch_norm: `statistics_frozen` is MLRC's setting: running statistics are fixed, scale and shift train.
            `frozen` fixes both. `training` fixes neither.
        pooling: Pooling of the last feature map. `average_max` is the sum of average and maximum (Proxy-Anchor's code).
        input_format: Format of the images; None takes that of the trunk.
        batch_norm_momentum: Weight of a new batch in the running statistics, between 0 and 1, as in torch: new =
            (1 - momentum) * old + momentum * batch. None takes that of the network. Only with `batch_norm: training`,
            because otherwise the running statistics are fixed.
        frozen: Whether the trunk stays as it is. Its features of the images are computed once, and trainings see only
            the features: only the embedder and the loss train.
        width: Number of features of an image where there is no trunk; None for a trunk, which has its own number.
    """

    name: str
    weights: Annotated[str, FREE] = "imagenet"
    batch_norm: Annotated[Literal["statistics_frozen", "frozen", "training"], TRAINED_TRUNK] = "statistics_frozen"
    pooling: Literal["average", "average_max"] = "average"
    input_format: InputFormat | None = None
    batch_norm_momentum: Annotated[float | None, TRAINED_TRUNK] = Field(default=None, gt=0, le=1)
    frozen: bool = False
    width: int | None = Field(default=None, ge=1)

    @property
    def is_input_features(self) -> bool:
        """Whether a training reads features and no images, because the trunk is frozen or there is none."""
        return self.frozen or self.name == NO_TRUNK

    @model_validator(mode="before")
    @classmethod
    def _default_weights(cls, values: Any) -> Any:
        if isinstance(values, dict) and "weights" not in values and ":" in str(values.get("name")):
            return {**values, "weights": PRETRAINED}
        return values

    @model_validator(mode="after")
    def _frozen_trunk_does_not_train(self) -> "TrunkSpec":
        if self.frozen and self.weights == "random":
            raise ValueError("a frozen trunk needs trained weights, since its random weights would never train")
        return self

    @model_validator(mode="after")
    def _momentum_has_an_effect(self) -> "TrunkSpec":
        if self.batch_norm_momentum is not None and self.batch_norm != "training":
            raise ValueError("batch_norm_momentum needs batch_norm: training, which updates running statistics")
        return self


class EmbedderSpec(Record):
    """The embedder between the trunk's pooled features and the embedding.

    Attributes:
        hidden: Sizes of the hidden layers, each followed by a ReLU. Empty gives MLRC's single linear layer.
        init: Start of the linear layers. `random` is torch's default and MLRC's. `kaiming_fan_out` is that of
            Proxy-Anchor's and Proxy-ISA's code: weights from N(0, 2 / d) for d outputs, bias zero. `glorot_uniform` is
            that of CCP's code: weights uniform within sqrt(6 / (c + d)) for c inputs, bias zero. The others are closed
            forms over the features of the fold's training images (`protocols.training.closed_forms`).
        shrinkage: Part of a covariance that is replaced by a multiple of the identity before it is inverted, 0 to 1;
            only for the closed forms that invert one, whose default is 0.5.
        normalize: Whether features are brought to length 1 before the first layer.
    """

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = ()
    init: Literal[
        "random", "kaiming_fan_out", "glorot_uniform", "pca", "whitened_pca", "within_class_whitening", "lda"
    ] = "random"
    shrinkage: float | None = optional(None, ge=0, le=1)
    normalize: bool = optional(False)

    @property
    def is_computed(self) -> bool:
        """Whether the start is a closed form over the features of the training images."""
        return self.init == "pca" or self.shrinkage is not None

    @model_validator(mode="before")
    @classmethod
    def _default_shrinkage(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("init") in _WHITENED and values.get("shrinkage") is None:
            return {**values, "shrinkage": 0.5}
        return values

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> "EmbedderSpec":
        if self.shrinkage is not None and self.init not in _WHITENED:
            raise ValueError(f"shrinkage has no effect with init: {self.init}; it is for {', '.join(_WHITENED)}")
        if self.hidden and self.is_computed:
            raise ValueError(f"init: {self.init} is for a linear embedder; leave out hidden, or set init: random")
        return self
