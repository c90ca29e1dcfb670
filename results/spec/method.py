"""A method: its loss and miner, batches, optimizers, warm-up and embedder, as a card has them.

Stored trainings have the settings side by side under older names, which are part of their fingerprints. `_STORED` is
the one place that knows these names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import (
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from results.spec.component import Component, SourceName, WeightedComponent, nested_components
from results.spec.trunk_spec import EmbedderSpec
from results.values import Record

LOSS_LR, NETWORK_LR, BATCHES = "loss_optimizer.lr", "optimizer.lr", "batch.samples_per_class"
"""Hyperparameters by target that the suite itself knows."""

_STORED = {
    BATCHES: "samples_per_class",
    LOSS_LR: "loss_lr",
    "loss_optimizer.weight_decay": "loss_weight_decay",
    "warmup.passes": "warmup_passes",
    "warmup.steps": "warmup_steps",
    NETWORK_LR: "lr",
    "batch.classes": "whole_passes",
}
"""Names of settings in stored trainings and studies, by their names in cards."""

_STORED_ORDER = (
    *("name", "loss", "miner", "embedding_regularizer", "samples_per_class", "loss_lr", "loss_weight_decay"),
    *("warmup_passes", "warmup_steps", "versions", "embedder", "lr", "whole_passes"),
)


class HyperparameterError(ValueError):
    """A hyperparameter's target does not exist in the method, or it cannot have the value."""


class Batch(Record):
    """Batch composition.

    Attributes:
        samples_per_class: Images per class in a batch (m); 0 draws images at random.
        classes: `once` drops the incomplete last batch of each pass, so that no batch holds an image or a class twice,
            for losses that rank a query's own class among all others. `any` is MLRC's: the rest of a pass begins the
            next batch, which can have a class twice.
    """

    samples_per_class: int = Field(default=4, ge=0)
    classes: Literal["any", "once"] = "any"

    @property
    def whole_passes(self) -> bool:
        """Whether the incomplete last batch of each pass is dropped."""
        return self.classes != "any"


class LossOptimizer(Record):
    """Optimizer settings of the loss's own parameters. None takes those of the network.

    Attributes:
        lr: Learning rate.
        weight_decay: Weight decay.
    """

    lr: float | None = None
    weight_decay: float | None = None


class NetworkOptimizer(Record):
    """Optimizer settings of trunk and embedder that a method has of its own.

    Attributes:
        lr: Learning rate; None takes that of the training settings.
    """

    lr: float | None = None


class Warmup(Record):
    """Warm-up, during which the trunk is frozen.

    Attributes:
        passes: Number of passes over the training images; None takes the default of the loss's class. A pass is an
            epoch in the sense of the methods' authors, while an epoch of MLRC is a number of iterations.
        steps: Number of steps, instead of `passes`.
    """

    passes: int | None = Field(default=None, ge=0)
    steps: int | None = Field(default=None, ge=0)


class Method(Record):
    """A method with a value for every hyperparameter, nested as users write it in a card.

    Attributes:
        loss: The loss; None for the untrained trunk. The name is that of a class of this suite, of
            pytorch-metric-learning or of an installed package, or `./my_losses.py:MyLoss` or
            `my_package.module:MyLoss`. Miner and regularizer are named likewise.
        miner: The miner, if any.
        embedding_regularizer: A regularizer of the embeddings with its weight in the loss, if any.
        batch: Batch composition.
        loss_optimizer: Optimizer settings of the loss's parameters.
        optimizer: Optimizer settings of the network.
        warmup: Warm-up with a frozen trunk.
        embedder: How the embedder of a method without loss is computed: a closed form over the trunk's features of the
            training images, such as `{init: lda}`, of which `principal_components` is `{init: pca}`. `test_components`
            leaves out the embedder, and the test embeddings are projected on their own components, to the size of the
            embedding for each fold and of all folds together. None leaves out the embedder.
        versions: Version of each class of the method, by class name; users' classes have a hash in their name instead.
            A new version changes the fingerprints of the method's trainings.
    """

    name: str
    loss: Component | None
    miner: Component | None = None
    embedding_regularizer: WeightedComponent | None = None
    batch: Batch = Batch()
    loss_optimizer: LossOptimizer = LossOptimizer()
    optimizer: NetworkOptimizer = NetworkOptimizer()
    warmup: Warmup = Warmup()
    embedder: EmbedderSpec | Literal["principal_components", "test_components"] | None = None
    versions: dict[str, str] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _as_in_cards(cls, values: Any) -> Any:
        """Nest what a stored training has side by side."""
        if not isinstance(values, dict) or not values.keys() & _STORED.values():
            return values
        nested = {key: value for key, value in values.items() if key not in _STORED.values()}
        for target, stored in _STORED.items():
            if stored in values:
                part, _, key = target.partition(".")
                value = ("once" if values[stored] else "any") if stored == "whole_passes" else values[stored]
                nested.setdefault(part, {})[key] = value
        return nested

    @model_serializer(mode="wrap")
    def _as_stored(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        settings: dict[str, Any] = handler(self)
        for target, stored in _STORED.items():
            part, _, key = target.partition(".")
            settings[stored] = settings[part][key]
        settings["whole_passes"] = self.batch.whole_passes
        return {key: settings[key] for key in _STORED_ORDER}

    def at(self, setting: Mapping[str, JsonValue]) -> Self:
        """Return the method with other values of hyperparameters: that of a training.

        Args:
            setting: Values by target, such as `loss.margin` or `loss_optimizer.lr`.

        Raises:
            HyperparameterError: A target does not exist in the method, or it cannot have the value.
        """
        if not setting and (self.batch.samples_per_class or self.batch.whole_passes):
            return self
        changed = self.model_dump(mode="json")
        for target, value in setting.items():
            holder, key = self._place(changed, target)
            holder[key] = value
        # A loader of shuffled images drops the rest of a pass; only m-per-class sampling of MLRC carries it over.
        if changed["samples_per_class"] == 0:
            changed["whole_passes"] = True
        try:
            return self.model_validate(changed)
        except ValidationError as error:
            first = error.errors()[0]
            part, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
            raise HyperparameterError(f"method {self.name!r}: {part}: {reason}") from error

    def values_of(self, targets: Iterable[str]) -> dict[str, JsonValue]:
        """Return the values of hyperparameters, None where the method leaves it to its class or to other settings.

        Raises:
            HyperparameterError: A target does not exist in the method.
        """
        known = self.model_dump(mode="json")
        places = {target: self._place(known, target) for target in targets}
        return {
            target: holder[key] if isinstance(holder, list) else holder.get(key)
            for target, (holder, key) in places.items()
        }

    def _place(self, settings: dict[str, Any], target: str) -> tuple[Any, Any]:
        """The dict or list of stored settings that has a target, and its key, e.g. of `embedding_regularizer.weight`.

        `loss.base_loss.alpha` is the argument alpha of the component in the argument base_loss, `loss.losses.0.alpha`
        that of the first component in the list losses.
        """
        part, _, key = target.partition(".")
        if target in _STORED and target != "batch.classes":
            return settings, _STORED[target]
        if (part, key) == ("embedding_regularizer", "weight") or part == "embedder":
            if key and isinstance(settings[part], dict):
                return settings[part], key
        elif part in ("loss", "miner", "embedding_regularizer") and key and settings[part] is not None:
            *outer, last = key.split(".")
            arguments = settings[part]["arguments"]
            for name in outer:
                arguments = _inside(arguments, name)
            if isinstance(arguments, dict):
                return arguments, last
            if isinstance(arguments, list) and last.isdigit() and int(last) < len(arguments):
                return arguments, int(last)
        raise HyperparameterError(f"method {self.name!r} has no hyperparameter {target!r}")

    def renamed(self, rename: Callable[[str], str]) -> Self:
        """Return the method with new names of its classes, those of nested components included."""
        parts = {"loss": self.loss, "miner": self.miner, "embedding_regularizer": self.embedding_regularizer}
        return self.model_copy(update={key: part and part.renamed(rename) for key, part in parts.items()})

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


def _inside(arguments: Any, name: str) -> Any:
    """The arguments of the component, or the list, at a name or at a place of a list; None if there is neither."""
    if isinstance(arguments, list):
        inner = arguments[int(name)] if name.isdigit() and int(name) < len(arguments) else None
    else:
        inner = arguments.get(name) if isinstance(arguments, dict) else None
    if isinstance(inner, dict):
        return inner["component"].setdefault("arguments", {}) if "component" in inner else None
    return inner if isinstance(inner, list) else None


def components_of(method: Method) -> dict[str, Component]:
    """Return the components of a method by kind."""
    components = {"loss": method.loss, "miner": method.miner, "regularizer": method.embedding_regularizer}
    return {kind: component for kind, component in components.items() if component is not None}


def all_components(method: Method) -> Iterator[tuple[str, Component]]:
    """Yield the components of a method with their kinds, nested ones included."""
    for kind, component in components_of(method).items():
        yield kind, component
        for _, nested in nested_components(component.arguments):
            inner = {key: value for key, value in nested.items() if key != "kind"}
            yield str(nested.get("kind", "loss")), Component.model_validate(inner)


def sources_of(method: Method) -> tuple[str, ...]:
    """Return the names of a method's classes that come from a user's file or module, with their hashes."""
    names = [component.name for _, component in all_components(method)]
    return tuple(dict.fromkeys(name for name in names if SourceName.parse(name)))
