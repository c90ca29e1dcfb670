"""All that decides the outcome of one training, as a frozen value: a `FoldSpec` and its parts."""

from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field, JsonValue, model_validator

from results.values import Record, fingerprint_of

TRAINING_VERSION = 1
"""The meaning of a training. Raise it with every change that alters outcomes: old results then no longer match."""


class Component(Record):
    """A class by its name and the keyword arguments it is built with."""

    name: str
    arguments: dict[str, JsonValue] = Field(default={})


class WeightedComponent(Component):
    """A component whose contribution to the loss has a weight."""

    weight: float


class MethodSpec(Record):
    """A method with its hyperparameters settled.

    loss: None for the untrained trunk. samples_per_class: m of the m-per-class batches; 0 draws images at random.
    loss_lr, loss_weight_decay: for the loss's own parameters; None takes the network's. warmup_passes: passes over the
    training images with a frozen trunk; None takes what the loss's class asks for. versions: by class name, what a
    class of the method means, where that differs from what it meant before versions were written. A class that changes
    gives the method's trainings other names. warmup_steps: steps with a frozen trunk, in the place of `warmup_passes`.
    """

    later: ClassVar[frozenset[str]] = frozenset({"versions", "warmup_steps"})

    name: str
    loss: Component | None
    miner: Component | None = None
    embedding_regularizer: WeightedComponent | None = None
    samples_per_class: int = Field(default=4, ge=0)
    loss_lr: float | None = None
    loss_weight_decay: float | None = None
    warmup_passes: int | None = Field(default=None, ge=0)
    warmup_steps: int | None = Field(default=None, ge=0)
    versions: dict[str, str] = Field(default={})


class ImageSettings(Record):
    """How an image reaches the trunk (specification, section 3).

    resize: shorter side after the first, deterministic resize; None keeps the stored size.
    crop: side of the square that the trunk sees, in pixels. area, ratio: ranges of the random resized crop.
    flip: mirror left and right with probability one half. evaluation_resize: shorter side before the centre crop, where
    it differs from `resize`; papers that crop for training from the full-size image set it.
    augmentation: `faithful` resizes each crop by Pillow; `device` resizes a batch at once where the network trains.
    """

    later: ClassVar[frozenset[str]] = frozenset({"evaluation_resize", "augmentation"})

    resize: int | None = Field(default=256, ge=1)
    crop: int = Field(default=227, ge=1)
    area: tuple[float, float] = (0.16, 1.0)
    ratio: tuple[float, float] = (0.75, 4 / 3)
    flip: bool = True
    evaluation_resize: int | None = Field(default=None, ge=1)
    augmentation: Literal["faithful", "device"] = "faithful"


class TrunkSpec(Record):
    """Trunk by name, what its weights are, and which part of its batch normalization trains.

    batch_norm: `statistics_frozen` is MLRC's (running statistics fixed, scale and shift train), `frozen` fixes both,
    `training` none. pooling: of the last feature map; `average_max` is the sum of both (Proxy-Anchor's code).
    """

    later: ClassVar[frozenset[str]] = frozenset({"pooling"})

    name: str
    weights: str
    batch_norm: Literal["statistics_frozen", "frozen", "training"] = "statistics_frozen"
    pooling: Literal["average", "average_max"] = "average"


class OptimizerSettings(Record):
    """Optimizer of trunk and embedder; the loss's own parameters use the same class with their own rate and decay."""

    name: Literal["RMSprop", "Adam", "AdamW", "SGD"] = "RMSprop"
    lr: float = 1e-6
    weight_decay: float = 1e-4
    arguments: dict[str, JsonValue] = Field(default={"momentum": 0.9})


class StepSchedule(Record):
    """Every learning rate is multiplied by `factor` after each of the epochs in `milestones` is done."""

    milestones: tuple[int, ...] = Field(min_length=1)
    factor: float = Field(gt=0, lt=1)


class TrainingSettings(Record):
    """Length and rhythm of one training (specification, sections 5 and 6); `validate_every`, `patience` in epochs.

    iterations_per_epoch: None makes an epoch one pass over the training images, as the papers count. schedule: None
    keeps the learning rates. clip_norm: gradients of network and loss together are scaled down to this norm where
    theirs is larger. clip_value: then each of them is clipped to [-value, value]. precision: `amp` computes trunk and
    embedder in mixed precision on a GPU.
    """

    later: ClassVar[frozenset[str]] = frozenset({"schedule", "clip_value", "clip_norm", "precision"})

    batch_size: int = Field(default=32, ge=1)
    iterations_per_epoch: int | None = Field(default=100, ge=1)
    max_epochs: int = Field(default=1000, ge=1)
    validate_every: int = Field(default=2, ge=1)
    patience: int = Field(default=9, ge=0)
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: StepSchedule | None = None
    clip_value: float | None = Field(default=None, gt=0)
    clip_norm: float | None = Field(default=None, gt=0)
    precision: Literal["float32", "amp"] = "float32"

    def steps_per_epoch(self, training_images: int) -> int:
        """Iterations of an epoch; of a pass over the images the last incomplete batch is left out."""
        return self.iterations_per_epoch or max(1, training_images // self.batch_size)


class FoldSpec(Record):
    """All that decides the outcome of one training.

    train_classes, validation_classes: ranks as inclusive ranges. Test classes have no place here: the search must not
    see them. embedding_size: None leaves out the embedder. embedder_bias: whether its linear layer has one.
    checkpoint_epoch: the epoch whose weights are the model's, settled before by another training's validation; such a
    training has no validation classes and runs to its last epoch. normalization: of embeddings before they are
    compared; None takes what the loss asks for, which is `unit` for most.
    """

    later: ClassVar[frozenset[str]] = frozenset({"embedder_bias", "checkpoint_epoch", "normalization"})

    training_version: int = TRAINING_VERSION
    dataset: str
    data_fingerprint: str
    split: str
    fold: int
    train_classes: tuple[tuple[int, int], ...]
    validation_classes: tuple[tuple[int, int], ...]
    images: ImageSettings
    trunk: TrunkSpec
    embedding_size: int | None
    method: MethodSpec
    training: TrainingSettings
    seed: int
    embedder_bias: bool = True
    checkpoint_epoch: int | None = Field(default=None, ge=0)
    normalization: Literal["unit", "ball"] | None = None

    @model_validator(mode="after")
    def _validated_or_settled(self) -> "FoldSpec":
        if bool(self.validation_classes) == (self.checkpoint_epoch is not None):
            raise ValueError("a training has either validation classes or a settled checkpoint_epoch")
        return self

    @cached_property
    def fingerprint(self) -> str:
        """The name of this training."""
        return fingerprint_of(self.model_dump(mode="json"))
