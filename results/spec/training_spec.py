"""The specification of one training: a `FoldSpec` holds everything that decides the training's outcome."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from results.spec.trunk_spec import EmbedderSpec, TrunkSpec
from results.values import Record, Spec, fingerprint_of

Precision = Literal["float32", "tf32", "amp"]

TRAINING_VERSION = 2
"""Version of the training. Raise it with every change that alters outcomes: old results then no longer match.

Version 1 used slower kernels on a CPU (memory layout, optimizer), which round differently.
"""

KINDS = ("loss", "miner", "regularizer", "distance", "reducer")
"""The kinds of components that a method can have."""


def nested_components(arguments: Mapping[str, JsonValue]) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """Find the components among arguments, and those among their arguments; each with the name of its argument.

    Such an argument, or an element of a list, is a dictionary with one key: `{"component": {"kind": ..., "name": ...,
    "arguments": ...}}`. A component without a name, of an unknown kind or with an unknown key is a ValueError.
    """
    singles = (
        (key, one) for key, value in arguments.items() for one in (value if isinstance(value, list) else [value])
    )
    for key, value in singles:
        if not isinstance(value, dict) or set(value) != {"component"}:
            continue
        nested = value["component"]
        if not isinstance(nested, dict) or not isinstance(nested.get("name"), str):
            raise ValueError(f"the component in argument {key!r} needs the name of a class, as in {{name: LpDistance}}")
        if unknown := sorted(nested.keys() - {"kind", "name", "arguments"}):
            raise ValueError(f"the component in argument {key!r} takes kind, name and arguments, not {unknown[0]!r}")
        if nested.get("kind", "loss") not in KINDS:
            raise ValueError(f"the component in argument {key!r} has kind {nested['kind']!r}; use {', '.join(KINDS)}")
        inner = nested.get("arguments", {})
        if not isinstance(inner, dict):
            raise ValueError(f"the arguments of the component in argument {key!r} must be keys and values")
        yield key, nested
        yield from nested_components(inner)


def renamed_components(arguments: Mapping[str, JsonValue], rename: Callable[[str], str]) -> dict[str, JsonValue]:
    """Return a copy of arguments in which all components have new names."""

    def renamed(value: JsonValue) -> JsonValue:
        if isinstance(value, list):
            return [renamed(one) for one in value]
        if not (isinstance(value, dict) and set(value) == {"component"} and isinstance(value["component"], dict)):
            return value
        nested = value["component"]
        inner = nested.get("arguments", {})
        assert isinstance(inner, dict)
        names = {**nested, "name": rename(str(nested["name"]))}
        return {"component": {**names, "arguments": renamed_components(inner, rename)} if inner else names}

    return {key: renamed(value) for key, value in arguments.items()}


class Component(Record):
    """A class by its name, with the keyword arguments that it is built with."""

    name: str
    arguments: dict[str, JsonValue] = Field(default={})

    @model_validator(mode="after")
    def _nested_components_have_names(self) -> Self:
        list(nested_components(self.arguments))  # The iteration checks each of them.
        return self

    def renamed(self, rename: Callable[[str], str]) -> Self:
        """Return a copy with new names of the class and of all components that are arguments."""
        return self.model_copy(
            update={"name": rename(self.name), "arguments": renamed_components(self.arguments, rename)}
        )


class WeightedComponent(Component):
    """A component whose contribution to the loss has a weight."""

    weight: float


class MethodSpec(Spec):
    """A method with a value for every hyperparameter.

    Attributes:
        loss: The loss; None for the untrained trunk.
        embedding_regularizer: Regularizer of the embeddings and its weight in the loss.
        samples_per_class: Images per class of a batch (m); 0 draws images at random.
        loss_lr: Learning rate of the loss's own parameters; None takes the network's.
        loss_weight_decay: Weight decay of the loss's own parameters; None takes the network's.
        warmup_passes: Passes over the training images with a frozen trunk; None takes the default of the loss's class.
        warmup_steps: Steps with a frozen trunk, instead of `warmup_passes`.
        versions: Version of each class of the method, by class name. A class without an entry has the version that it
            had before versions were written. A new version changes the fingerprints of the method's trainings.
        embedder: How the embedder of a method without loss is computed. `principal_components` projects the trunk's
            features on their principal components over the training images. `test_components` leaves out the
            embedder, and the test embeddings are projected on their own components, to the size of the embedding for
            each fold and of all folds together. None leaves out the embedder.
        lr: Learning rate of trunk and embedder; None takes that of the training settings.
        whole_passes: Whether the incomplete last batch of each pass is dropped, so that no batch holds an image or a
            class twice. Otherwise the rest of a pass begins the next batch, as in MLRC.
    """

    optional = frozenset({"versions", "warmup_steps", "embedder", "lr", "whole_passes"})

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
    embedder: Literal["principal_components", "test_components"] | None = None
    lr: float | None = None
    whole_passes: bool = False

    @property
    def needs_bias(self) -> bool:
        """Whether the embedder needs a bias: principal components need it to centre the features."""
        return self.embedder == "principal_components"

    @property
    def has_embedding_size(self) -> bool:
        """Whether the embeddings have the experiment's size; otherwise they are the features of the trunk."""
        return self.loss is not None or self.embedder is not None


class ImageSettings(Spec):
    """Transforms of an image before the trunk (specification, section 3).

    Attributes:
        resize: Shorter side in pixels after the first, deterministic resize; None keeps the stored size.
        crop: Side in pixels of the square that the trunk gets.
        area: Range of the random resized crop's area, as fractions of the image's area.
        ratio: Range of the random resized crop's width divided by its height.
        flip: Whether to mirror a crop left and right with probability one half.
        evaluation_resize: Shorter side in pixels before the centre crop; None takes `resize`. Papers that crop for
            training from the full-size image set it.
        augmentation: `faithful` resizes each crop with Pillow. `device` resizes a whole batch on the network's device.
    """

    optional = frozenset({"evaluation_resize", "augmentation"})

    resize: int | None = Field(default=256, ge=1)
    crop: int = Field(default=227, ge=1)
    area: tuple[float, float] = (0.16, 1.0)
    ratio: tuple[float, float] = (0.75, 4 / 3)
    flip: bool = True
    evaluation_resize: int | None = Field(default=None, ge=1)
    augmentation: Literal["faithful", "device"] = "faithful"


class OptimizerSettings(Spec):
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

    optional = frozenset({"layer_decay", "weight_decay_of"})

    name: Literal["RMSprop", "Adam", "AdamW", "SGD"] = "RMSprop"
    lr: float = 1e-6
    weight_decay: float = 1e-4
    arguments: dict[str, JsonValue] = Field(default={"momentum": 0.9})
    layer_decay: float | None = Field(default=None, gt=0, lt=1)
    weight_decay_of: Literal["all", "matrices"] = "all"


class RateSchedule(Spec):
    """A schedule of all learning rates: a scheduler of torch by its name, or milestones with a factor.

    Attributes:
        milestones: Numbers of the epochs after which the rates are multiplied, as torch's `MultiStepLR` does it.
        factor: The factor, between 0 and 1.
        name: Class of `torch.optim.lr_scheduler`, instead of milestones and factor.
        arguments: Keyword arguments of the class.
        schedulers: The schedules that `SequentialLR` and `ChainedScheduler` put together.
        every: Whether the scheduler moves after every epoch or after every iteration (`step`).
    """

    optional = frozenset({"milestones", "factor", "name", "arguments", "schedulers", "every"})

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


class TrainingSettings(Spec):
    """Length, optimizer and precision of one training (specification, sections 5 and 6).

    Attributes:
        iterations_per_epoch: Iterations of an epoch; None makes it one pass over the training images, as in the papers.
        validate_every: Epochs between two validations.
        patience: The training stops when more than this many epochs have passed since the best validation.
        schedule: Schedule of the learning rates; None keeps them constant.
        clip_value: Largest absolute value of a gradient's entries, applied after `clip_norm`; None does not clip.
        clip_norm: Largest norm of all gradients of network and loss together; None does not clip.
        precision: How a GPU computes. `amp` is bfloat16 in trunk and embedder, and `tf32` in the rest.
        gradient_cache: The network computes a batch in chunks of this many images, twice, and keeps no more in memory
            than one chunk needs; the loss sees the whole batch. None computes a batch at once.
    """

    optional = frozenset({"schedule", "clip_value", "clip_norm", "precision", "gradient_cache"})

    batch_size: int = Field(default=32, ge=1)
    iterations_per_epoch: int | None = Field(default=100, ge=1)
    max_epochs: int = Field(default=1000, ge=1)
    validate_every: int = Field(default=2, ge=1)
    patience: int = Field(default=9, ge=0)
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: RateSchedule | None = None
    clip_value: float | None = Field(default=None, gt=0)
    clip_norm: float | None = Field(default=None, gt=0)
    precision: Precision = "float32"
    gradient_cache: int | None = Field(default=None, ge=1)

    def steps_per_epoch(self, training_images: int) -> int:
        """Return the number of iterations of an epoch. A pass over the images leaves out an incomplete last batch."""
        return self.iterations_per_epoch or max(1, training_images // self.batch_size)


def check_settings_of_trunk(training: TrainingSettings, trunk: TrunkSpec) -> None:
    """Refuse settings of a training that its trunk does not allow, as a ValueError."""
    if training.gradient_cache is not None and trunk.is_input_features:
        raise ValueError("training: gradient_cache has no effect on features, which need little memory; remove it")
    if training.gradient_cache is not None and trunk.batch_norm == "training":
        raise ValueError(
            "training: gradient_cache computes a batch in chunks, and batch_norm: training would normalise each chunk "
            "by itself; remove one of them"
        )
    if training.optimizer.layer_decay is not None and trunk.is_input_features:
        raise ValueError(
            "training: optimizer: layer_decay has no effect on features, which no layer computes; remove it"
        )


class FoldSpec(Spec):
    """Everything that decides the outcome of one training.

    There is no field for test classes, since the search must not see them.

    Attributes:
        fold: Number of the fold, from 0.
        train_classes: Ranks of the training classes, as inclusive ranges.
        validation_classes: Ranks of the validation classes, as inclusive ranges.
        embedding_size: Size of the embedding; None leaves the trunk's features as they are.
        checkpoint_epoch: The epoch whose weights are the model. It was chosen by the validation of another training.
            A training with this field has no validation classes and runs to its last epoch.
        normalization: Normalization of the embeddings before they are compared; None takes the one of the loss, which
            is `unit` for most losses.
    """

    optional = frozenset({"embedder_bias", "checkpoint_epoch", "normalization", "embedder"})

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
    embedder: EmbedderSpec = EmbedderSpec()

    @model_validator(mode="after")
    def _validated_or_settled(self) -> "FoldSpec":
        if bool(self.validation_classes) == (self.checkpoint_epoch is not None):
            raise ValueError("a training needs either validation classes or a checkpoint_epoch, not both")
        check_settings_of_trunk(self.training, self.trunk)
        return self

    @property
    def embedder_size(self) -> int | None:
        """Size of the embedder's output; None without an embedder. Components of the test come after the model."""
        return None if self.method.embedder == "test_components" else self.embedding_size

    @cached_property
    def fingerprint(self) -> str:
        """The name of this training: a hash of all fields."""
        return fingerprint_of(self.model_dump(mode="json"))
