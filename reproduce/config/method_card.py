"""Method cards: what a method is, as data (reproduce/methods/*.yaml).

A card is parsed here without torch, so that tables can name hyperparameters; `checked_card` checks that its losses can
be built.
"""

import json
from importlib import metadata
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from reproduce.config.yaml_files import METHODS, named_file, names_in, read_model
from reproduce.errors import InputError
from results.experiment_spec import Bounds
from results.training_spec import Component, WeightedComponent
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

    def bounds_on(self, dataset: str, bounds: Literal["widened", "initial"]) -> tuple[float | None, float | None]:
        """Lowest and highest value on a dataset, as MLRC's ranges ended or as they began; None for choices."""
        replaced = self.datasets.get(dataset)
        if bounds == "initial":
            replaced = self.initial.get(dataset, replaced)
        return (self.low, self.high) if replaced is None else (replaced.low, replaced.high)


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


def card_file(name: str) -> Path:
    """The file of the card of that name, or of that path; raises InputError if there is none."""
    return named_file(name, card_folders(), "method")


def read_card(path: Path) -> MethodCard:
    """A card's file, parsed; whether its classes accept it is not checked. Raises InputError for no valid card."""
    card = read_model(path, MethodCard)
    if card.key != path.stem:
        raise InputError(f"{path}: key {card.key!r} must be the file's name {path.stem!r}")
    return card


def published_hyperparameter_names(method: str) -> dict[str, str]:
    """Published names of a method's searched hyperparameters, by target; empty if the suite has no card of that key."""
    if method not in names_in(METHODS):
        return {}
    search = read_card(METHODS / f"{method}.yaml").search
    return {target: choice.published_as for target, choice in search.items() if choice.published_as is not None}


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
