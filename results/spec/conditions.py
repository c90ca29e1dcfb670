"""The conditions of a comparison: images, network, training and normalisation, which all methods of it share.

A new setting of a training is a field here, and its use.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from results.spec.trunk_spec import NO_TRUNK, EmbedderSpec, TrunkSpec
from results.values import FREE, TRAINED_TRUNK, Record, flat, marked

Precision = Literal["float32", "ieee", "amp"]

_OF_ALL_ROWS = ("trunk", "trunk.name", "trunk.weights", "trunk.frozen")


class ImageSettings(Record):
    """Transforms of an image before the trunk (specification, section 3).

    Attributes:
        resize: Shorter side in pixels after the first, deterministic resize; None keeps the stored size.
        crop: Side in pixels of the square that the trunk gets.
        area: Range of the random resized crop's area, as fractions of the image's area.
        ratio: Range of the random resized crop's width divided by its height.
        flip: Whether to mirror a crop left and right with probability one half.
        evaluation_resize: Shorter side in pixels before the centre crop; None takes `resize`. Papers that crop for
            training from the full-size image set it.
    """

    resize: int | None = Field(default=256, ge=1)
    crop: int = Field(default=227, ge=1)
    area: Annotated[tuple[float, float], TRAINED_TRUNK] = (0.16, 1.0)
    ratio: Annotated[tuple[float, float], TRAINED_TRUNK] = (0.75, 4 / 3)
    flip: Annotated[bool, TRAINED_TRUNK] = True
    evaluation_resize: int | None = Field(default=None, ge=1)


class OptimizerSettings(Record):
    """Optimizer of trunk and embedder. The loss's own parameters use the same class with their own rate and decay.

    Attributes:
        name: Class of `torch.optim`.
        arguments: Further keyword arguments of the class.
        layer_decay: Learning rate of each layer of the trunk divided by that of the layer behind it; the embedder has
            the rate `lr`. None gives all the same rate. A layer is what the trunk numbers, such as `blocks.3`. What
            comes before the first number is one layer; what comes behind the last one has the embedder's rate.
        weight_decay_of: `matrices` leaves out the biases of trunk and embedder and the scales and shifts of
            normalisation, which are parameters of one dimension. `all` decays them too.
    """

    name: Literal["RMSprop", "Adam", "AdamW", "SGD"] = "RMSprop"
    lr: float = Field(default=1e-6, ge=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    arguments: dict[str, JsonValue] = Field(default={"momentum": 0.9})
    layer_decay: Annotated[float | None, TRAINED_TRUNK] = Field(default=None, gt=0, lt=1)
    weight_decay_of: Literal["all", "matrices"] = "all"


class RateSchedule(Record):
    """A schedule of all learning rates: a scheduler of torch by its name, or milestones with a factor.

    Attributes:
        milestones: Numbers of the epochs after which the rates are multiplied, as torch's `MultiStepLR` does it.
        factor: The factor, between 0 and 1.
        name: Class of `torch.optim.lr_scheduler`, instead of milestones and factor.
        arguments: Keyword arguments of the class.
        schedulers: The schedules that `SequentialLR` and `ChainedScheduler` put together.
        every: Whether the scheduler moves after every epoch or after every iteration (`step`).
    """

    milestones: tuple[int, ...] | None = Field(default=None, min_length=1)
    factor: float | None = Field(default=None, gt=0, lt=1)
    name: str | None = None
    arguments: dict[str, JsonValue] = Field(default={})
    schedulers: tuple["RateSchedule", ...] = ()
    every: Literal["epoch", "step"] = "epoch"

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> Self:
        if (self.milestones is None) != (self.factor is None) or (self.milestones is None) == (self.name is None):
            raise ValueError("a schedule needs either milestones and factor, or the name of a scheduler of torch")
        if self.name is None and (self.arguments or self.schedulers):
            raise ValueError("milestones and factor take no arguments and no schedulers; give the name of a scheduler")
        if any(part.every != self.every for part in self.schedulers if "every" in part.model_fields_set):
            raise ValueError("the parts of a schedule move together; give every once, beside the name of the whole")
        return self


class TrainingSettings(Record):
    """Length, optimizer and precision of one training (specification, sections 5 and 6).

    Attributes:
        iterations_per_epoch: Iterations of an epoch; None makes it one pass over the training images, as in the papers.
        validate_every: Epochs between two validations.
        patience: The training stops when more than this many epochs have passed since the best validation.
        schedule: Schedule of the learning rates; None keeps them constant.
        clip_value: Largest absolute value of a gradient's entries, applied after `clip_norm`; None does not clip.
        clip_norm: Largest norm of all gradients of network and loss together; None does not clip.
        precision: How a GPU computes. `float32` is torch's own default: TF32 in convolutions and not in products.
            `ieee` takes TF32 nowhere. `amp` is bfloat16 in trunk and embedder, and TF32 in the rest. A CPU has no TF32.
        gradient_cache: The network computes a batch in chunks of this many images, twice, and keeps no more in memory
            than one chunk needs; the loss sees the whole batch. None computes a batch at once.
    """

    batch_size: int = Field(default=32, ge=1)
    iterations_per_epoch: int | None = Field(default=100, ge=1)
    max_epochs: int = Field(default=1000, ge=1)
    validate_every: int = Field(default=2, ge=1)
    patience: int = Field(default=9, ge=0)
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: RateSchedule | None = None
    clip_value: float | None = Field(default=None, gt=0)
    clip_norm: float | None = Field(default=None, gt=0)
    precision: Annotated[Precision, FREE] = "float32"
    gradient_cache: Annotated[int | None, TRAINED_TRUNK] = Field(default=None, ge=1)

    def steps_per_epoch(self, training_images: int) -> int:
        """Return the number of iterations of an epoch. A pass over the images leaves out an incomplete last batch."""
        return self.iterations_per_epoch or max(1, training_images // self.batch_size)


class Conditions(Record):
    """All settings of a training except data, method and seed. Only rows under equal conditions are compared.

    Attributes:
        trunk: Trunk, its weights and its batch normalisation.
        embedding_size: Output dimensions of the embedder; None takes as many as there are features.
        images: Resizing and cropping.
        training: Optimizer, batch size, length and validation.
        embedder_bias: Whether the embedder's last layer has a bias.
        embedder: Hidden layers and start of the embedder of methods with a loss.
        normalization: Normalisation of all methods' embeddings before they are compared; None takes that of each loss,
            which is `unit` for most losses.
    """

    trunk: TrunkSpec
    embedding_size: int | None = Field(default=128, ge=1)
    images: ImageSettings = ImageSettings()
    training: TrainingSettings = TrainingSettings()
    embedder_bias: bool = True
    embedder: EmbedderSpec = EmbedderSpec()
    normalization: Literal["unit", "ball"] | None = None

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> Self:
        training, trunk = self.training, self.trunk
        if training.gradient_cache is not None and trunk.batch_norm == "training":
            raise ValueError(
                "training: gradient_cache computes a batch in chunks, and batch_norm: training would normalise each "
                "chunk by itself; remove one of them"
            )
        if self.embedder.is_computed and not self.embedder_bias:
            init = self.embedder.init
            raise ValueError(f"embedder: init: {init} needs the bias, which centres features; remove embedder_bias")
        if trunk.name == NO_TRUNK and self.images != ImageSettings():
            raise ValueError("dataset features has no images; remove the settings of images")
        for key, default in trained_trunk_defaults().items() if trunk.is_input_features else ():
            if dict(flat(self.model_dump()))[key] != default:
                raise ValueError(f"{key.replace('.', ': ')} has no effect where the trunk does not train; remove it")
        return self


def trained_trunk_defaults() -> dict[str, object]:
    """Return the settings that have no effect where the trunk does not train, by dotted key, with their defaults."""
    defaults = dict(flat(Conditions(trunk=TrunkSpec(name="")).model_dump()))
    return {key: defaults[key] for key in marked(Conditions, TRAINED_TRUNK)}


def set_at(settings: dict[str, Any], key: str, value: JsonValue) -> None:
    """Set one of the settings of a row by its dotted key, as `training.batch_size`.

    Raises:
        ValueError: A row cannot have such a setting.
    """
    *outer, last = key.split(".")
    if (outer or [last])[0] not in settings:
        raise ValueError(f"a row cannot have its own {key!r}; it can have {', '.join(settings)}")
    if key in _OF_ALL_ROWS:
        raise ValueError(f"a row cannot have its own {key!r}; make a panel for another network")
    part = settings
    for depth, name in enumerate(outer):
        if not isinstance(part.get(name), dict):
            whole = ".".join(outer[: depth + 1])
            raise ValueError(f"{key!r} cannot be set: {whole!r} has no parts here; give {whole!r} as a whole")
        part = part[name]
    part[last] = value
