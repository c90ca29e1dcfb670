"""The specification of one training: a `FoldSpec` holds everything that decides the training's outcome."""

from typing import Any, Self

from pydantic import Field, model_validator

from results.spec.component import SourceName
from results.spec.conditions import Conditions
from results.spec.method import Method, sources_of
from results.spec.trunk_spec import EmbedderSpec
from results.values import Record, fingerprint_of, optional

TRAINING_VERSION = 2
"""Version of the training. Raise it with every change that alters outcomes: old results then no longer match.

Version 1 used slower kernels on a CPU (memory layout, optimizer), which round differently.
"""


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
        early_epoch: The epoch at which a trial of the search would have ended at the latest. The best model up to there
            is kept beside that of the whole training. None keeps no second model.
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
    method: Method
    conditions: Conditions
    seed: int
    checkpoint_epoch: int | None = Field(default=None, ge=0)
    early_epoch: int | None = optional(None, ge=1)
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


def sources_of_training(spec: FoldSpec) -> tuple[str, ...]:
    """Return the names of a training's classes and trunk that come from a user's file or module, with their hashes."""
    trunk = SourceName.parse(spec.conditions.trunk.name)
    # Only names with a hash: those of libraries, such as `timm:resnet18`, have none.
    return (*sources_of(spec.method), *([spec.conditions.trunk.name] if trunk is not None and trunk.digest else []))
