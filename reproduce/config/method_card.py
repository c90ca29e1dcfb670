"""Method cards: what a method is, as data (reproduce/methods/*.yaml)."""

import json
from importlib import metadata
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, ValidationError, model_validator

from protocols.search.open_method import HyperparameterError, OpenMethod
from protocols.search.space import SearchParameter
from protocols.training.build_method import MethodError, check_method
from reproduce.config.yaml_files import METHODS, describe, named_file, names_in, read_model
from reproduce.errors import InputError
from results.experiment_spec import Bounds, Variant
from results.training_spec import Component, MethodSpec, WeightedComponent
from results.values import Record

ENTRY_POINTS = "metric_learning_cards"
"""Entry-point group through which other packages bring cards: name = "a package with .yaml files in it"."""


class SearchRange(Record):
    """How one hyperparameter is searched.

    low, high: on datasets without bounds of their own. exhaustive: try every whole number once if the budget allows.
    datasets: bounds that MLRC ended with, widened where a search ran into them. initial: the bounds it began with,
    where they differ. published_as: the parameter's printed name.
    """

    scale: Literal["linear", "log", "int", "int_log", "choice"] = "linear"
    low: float | None = None
    high: float | None = None
    choices: tuple[JsonValue, ...] | None = None
    exhaustive: bool = False
    datasets: dict[str, Bounds] = Field(default={})
    initial: dict[str, Bounds] = Field(default={})
    published_as: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> "SearchRange":
        if self.scale == "choice":
            if not self.choices:
                raise ValueError("scale choice needs choices")
        elif self.low is None or self.high is None or self.low >= self.high:
            raise ValueError("needs low and high with low < high")
        elif "log" in self.scale and self.low <= 0:
            raise ValueError("a log scale needs low > 0")
        if self.exhaustive and self.scale != "int":
            raise ValueError("exhaustive needs scale int")
        return self

    def on(self, target: str, dataset: str, bounds: Literal["widened", "initial"]) -> SearchParameter:
        """The parameter as it is searched on a dataset."""
        own = self.datasets.get(dataset)
        if bounds == "initial":
            own = self.initial.get(dataset, own)
        low, high = (self.low, self.high) if own is None else (own.low, own.high)
        return SearchParameter(
            target=target, scale=self.scale, low=low, high=high, choices=self.choices, exhaustive=self.exhaustive
        )


class Batch(Record):
    """Batch composition: images per class; 0 draws images at random."""

    samples_per_class: int = Field(default=4, ge=0)


class Warmup(Record):
    """passes: how often all training images are seen with a frozen trunk first; None takes what the loss asks for.

    In passes over the data, the authors' epochs, since an epoch of MLRC is a number of iterations.
    """

    passes: int | None = None


class LossOptimizer(Record):
    """Learning rate and weight decay of the loss's own parameters; None takes the network's."""

    lr: float | None = None
    weight_decay: float | None = None


class MethodCard(Record):
    """A row of a result table: loss and miner, batches, optimizer group, search space, published optima, source.

    published: by dataset, the hyperparameters that the source reports as best. fixed: by dataset, what is not searched
    there but set.
    """

    key: str
    title: str
    source: str
    loss: Component | None
    miner: Component | None = None
    embedding_regularizer: WeightedComponent | None = None
    batch: Batch = Batch()
    loss_optimizer: LossOptimizer = LossOptimizer()
    warmup: Warmup = Warmup()
    search: dict[str, SearchRange] = Field(default={})
    published_as: str | None = None
    published: dict[str, dict[str, JsonValue]] = Field(default={})
    fixed: dict[str, dict[str, JsonValue]] = Field(default={})
    notes: str | None = None

    def open_method(self, dataset: str, bounds: Literal["widened", "initial"] = "widened") -> OpenMethod:
        """The method at its defaults with its search space on a dataset."""
        spec = MethodSpec(
            name=self.key,
            loss=self.loss,
            miner=self.miner,
            embedding_regularizer=self.embedding_regularizer,
            samples_per_class=self.batch.samples_per_class,
            loss_lr=self.loss_optimizer.lr,
            loss_weight_decay=self.loss_optimizer.weight_decay,
            warmup_passes=self.warmup.passes,
        )
        fixed = self.fixed.get(dataset, {})
        space = tuple(
            choice.on(target, dataset, bounds) for target, choice in self.search.items() if target not in fixed
        )
        return OpenMethod(method=OpenMethod(method=spec).at(fixed), space=space)


def load_variant(variant: Variant) -> MethodCard:
    """The card that a variant is of, with its settings; raises InputError."""
    card = load_card(variant.of)
    try:
        method = card.open_method("").method
        method = OpenMethod(method=method).at(variant.set)
        varied = card.model_copy(
            update={
                "key": variant.key,
                "title": variant.title,
                "loss": method.loss,
                "miner": method.miner,
                "embedding_regularizer": method.embedding_regularizer,
                "batch": Batch(samples_per_class=method.samples_per_class),
                "loss_optimizer": LossOptimizer(lr=method.loss_lr, weight_decay=method.loss_weight_decay),
                "search": {target: choice for target, choice in card.search.items() if target not in variant.set},
                "published": {},
            }
        )
        _check(varied)
    except (MethodError, HyperparameterError) as error:
        raise InputError(f"variant {variant.key!r} of method {variant.of!r}: {error}") from error
    return varied


def load_card(name: str) -> MethodCard:
    """The card of that name, or of that path; raises InputError for anything its classes would not accept."""
    path = named_file(name, card_folders(), "method")
    card = read_model(path, MethodCard)
    if card.key != path.stem:
        raise InputError(f"{path}: key {card.key!r} must be the file's name {path.stem!r}")
    try:
        _check(card)
    except (MethodError, HyperparameterError) as error:
        raise InputError(f"{path}: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from error
    return card


def card_names() -> list[str]:
    """The cards that come with the suite and with installed packages."""
    return sorted(name for folder in card_folders() for name in names_in(folder))


def card_folders() -> list[Path]:
    """The suite's cards first, then those of installed packages."""
    packages = [point.load() for point in metadata.entry_points(group=ENTRY_POINTS)]
    return [METHODS, *(Path(folder) for package in packages for folder in package.__path__)]


def card_schema() -> str:
    """JSON Schema of a card, for editors that check YAML while it is typed."""
    return json.dumps(MethodCard.model_json_schema(), indent=1) + "\n"


def _check(card: MethodCard) -> None:
    """Every argument, searched or fixed, must be one that the classes take."""
    if card.loss is None:
        if card.search:
            raise MethodError("a card without a loss has nothing to search")
        return
    middle = {target: choice.on(target, "", "widened").at(0.5) for target, choice in card.search.items()}
    settings = [middle, *card.published.values(), *card.fixed.values()]
    for setting in settings:
        check_method(card.open_method("").at(setting))
