"""The specification of one training: a `FoldSpec` holds everything that decides the training's outcome.

A class or function from a user's file or module is named as in `my_losses.py:CosineSoftmax (sha256 0123456789abcdef)`.
Cards and experiment files name them without the hash. The hash of the source is added before anything is trained, so
that it is part of the fingerprints, and old results are never taken for results of a changed source.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from results.spec.conditions import Conditions
from results.spec.trunk_spec import EmbedderSpec
from results.values import Record, fingerprint_of

TRAINING_VERSION = 2
"""Version of the training. Raise it with every change that alters outcomes: old results then no longer match.

Version 1 used slower kernels on a CPU (memory layout, optimizer), which round differently.
"""

_NAME = re.compile(r"(?P<source>.+):(?P<attribute>[^\W\d]\w*)(?: \(sha256 (?P<digest>[0-9a-f]{16})\))?")

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


class MethodSpec(Record):
    """A method with a value for every hyperparameter.

    Attributes:
        loss: The loss; None for the untrained trunk.
        embedding_regularizer: Regularizer of the embeddings and its weight in the loss.
        samples_per_class: Images per class of a batch (m); 0 draws images at random.
        loss_lr: Learning rate of the loss's own parameters; None takes the network's.
        loss_weight_decay: Weight decay of the loss's own parameters; None takes the network's.
        warmup_passes: Passes over the training images with a frozen trunk; None takes the default of the loss's class.
        warmup_steps: Steps with a frozen trunk, instead of `warmup_passes`.
        versions: Version of each class of the method, by class name; users' classes have a hash in their name instead.
            A new version changes the fingerprints of the method's trainings.
        embedder: How the embedder of a method without loss is computed: a closed form over the features of the
            training images, of which `principal_components` is `{init: pca}`. `test_components` leaves out the
            embedder, and the test embeddings are projected on their own components, to the size of the embedding for
            each fold and of all folds together. None leaves out the embedder.
        lr: Learning rate of trunk and embedder; None takes that of the training settings.
        whole_passes: Whether the incomplete last batch of each pass is dropped, so that no batch holds an image or a
            class twice. Otherwise the rest of a pass begins the next batch, as in MLRC.
    """

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
    embedder: EmbedderSpec | Literal["principal_components", "test_components"] | None = None
    lr: float | None = None
    whole_passes: bool = False

    @property
    def computed_embedder(self) -> EmbedderSpec:
        """The embedder of a method without loss."""
        if isinstance(self.embedder, EmbedderSpec):
            return self.embedder
        return EmbedderSpec(init="pca" if self.embedder == "principal_components" else "random")

    @property
    def has_embedding_size(self) -> bool:
        """Whether the embeddings have the experiment's size; otherwise they are the features of the trunk."""
        return self.loss is not None or self.embedder is not None


class FoldSpec(Record):
    """Everything that decides the outcome of one training.

    There is no field for test classes, since the search must not see them.

    Attributes:
        fold: Number of the fold, from 0.
        train_classes: Ranks of the training classes, as inclusive ranges; empty with `n_classes`.
        validation_classes: Ranks of the validation classes, likewise.
        n_classes: Number of the dataset's classes, for a drawn split, whose name and fold then say which these are:
            ranges of classes in a random order would be as long as the list of all classes. None for other splits.
        conditions: What the methods of a comparison share. The method can leave parts of it without an effect.
        checkpoint_epoch: The epoch whose weights are the model. It was chosen by the validation of another training.
            A training with this field has no validation classes and runs to its last epoch.
        fingerprint: The name of this training: a hash of all other fields when it is specified. It is written and read
            with them, and never computed again, so that a later field changes no name.
    """

    training_version: int = TRAINING_VERSION
    dataset: str
    data_fingerprint: str
    split: str
    fold: int
    train_classes: tuple[tuple[int, int], ...] = ()
    validation_classes: tuple[tuple[int, int], ...] = ()
    n_classes: int | None = Field(default=None, ge=1, exclude_if=lambda value: value is None)
    method: MethodSpec
    conditions: Conditions
    seed: int
    checkpoint_epoch: int | None = Field(default=None, ge=0)
    fingerprint: str = Field(default_factory=lambda others: _name_of_training(others))  # Last: it is made of them.

    @model_validator(mode="after")
    def _validated_or_settled(self) -> Self:
        if self.n_classes is not None and (self.train_classes or self.validation_classes):
            raise ValueError("a training has either its classes or the number of all classes, not both")
        if self.n_classes is None and bool(self.validation_classes) == (self.checkpoint_epoch is not None):
            raise ValueError("a training needs either validation classes or a checkpoint_epoch, not both")
        return self

    @property
    def has_embedder(self) -> bool:
        """Whether an embedder follows the trunk. Components of the test come after the model."""
        return self.method.has_embedding_size and self.method.embedder != "test_components"

    @property
    def embedder(self) -> EmbedderSpec:
        """Hidden layers and start of the embedder; a method without a loss has a linear one."""
        return self.conditions.embedder if self.method.loss is not None else self.method.computed_embedder

    @property
    def embedder_bias(self) -> bool:
        """Whether the embedder has a bias; closed forms need it to centre the features."""
        return self.conditions.embedder_bias or self.embedder.is_computed

    def changed(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields, and so with a fingerprint of its own."""
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "fingerprint"}
        return type(self)(**{**fields, **changes})

    def with_conditions(self, **changes: Any) -> Self:
        """Return a copy with other conditions, by name of the condition."""
        return self.changed(conditions=self.conditions.model_copy(update=changes))


def _name_of_training(fields: dict[str, Any]) -> str:
    return fingerprint_of(FoldSpec.model_construct(**fields, fingerprint="").identity({"fingerprint": True}))


@dataclass(frozen=True)
class SourceName:
    """The name of a class or function from a user's file or module.

    Attributes:
        source: Path of a `.py` file, or a module such as `my_package.module`.
        digest: First 16 digits of the SHA-256 of its source; None in cards and experiment files.
    """

    source: str
    attribute: str
    digest: str | None = None

    @classmethod
    def parse(cls, name: str) -> "SourceName | None":
        """Read a name; return None for a plain name, such as that of a class of pytorch-metric-learning."""
        match = _NAME.fullmatch(name)
        return cls(**match.groupdict()) if match else None

    def __str__(self) -> str:
        return f"{self.source}:{self.attribute}" + ("" if self.digest is None else f" (sha256 {self.digest})")

    @property
    def in_file(self) -> bool:
        """Whether the source is a file; a module otherwise."""
        return self.source.endswith(".py")


def relative_name(name: str, folder: Path) -> str:
    """Return a name with its path taken relative to a folder; plain names and modules stay as they are."""
    parsed = SourceName.parse(name)
    if parsed is None or not parsed.in_file:
        return name
    return str(replace(parsed, source=str(folder / Path(parsed.source).expanduser())))


def sources_of(method: MethodSpec) -> tuple[str, ...]:
    """Return the names of a method's classes that come from a user's file or module, with their hashes."""
    names = [
        name
        for component in (method.loss, method.miner, method.embedding_regularizer)
        if component is not None
        for name in (component.name, *(str(nested["name"]) for _, nested in nested_components(component.arguments)))
    ]
    return tuple(dict.fromkeys(name for name in names if SourceName.parse(name)))


def sources_of_training(spec: FoldSpec) -> tuple[str, ...]:
    """Return the names of a training's classes and trunk that come from a user's file or module, with their hashes."""
    trunk = SourceName.parse(spec.conditions.trunk.name)
    # Only names with a hash: those of libraries, such as `timm:resnet18`, have none.
    return (*sources_of(spec.method), *([spec.conditions.trunk.name] if trunk is not None and trunk.digest else []))
