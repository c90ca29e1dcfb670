"""Reads method cards (reproduce/methods/*.yaml), which define methods as data.

Cards are read without torch, so that tables can name hyperparameters. `open_method` checks that the classes of a card
can be built.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from reproduce.config.strict_yaml import METHODS, named_file, names_in, read_mapping, validated
from reproduce.errors import InputError
from results.spec.component import relative_name
from results.spec.experiment_spec import Metric, Title
from results.spec.method import Method
from results.spec.range import Range, Scale
from results.values import Record

Address = Annotated[str, Field(pattern=r"^https://[^\s\"<>]+$")]
"""Address of a page on the web."""

Percentage = Annotated[float, Field(ge=0, le=100)]

BoundsChoice = Literal["widened", "initial"]

_OF_METHOD = ("loss", "miner", "embedding_regularizer", "batch", "loss_optimizer", "warmup", "embedder")
"""Keys of a card that make its method."""


class CardRange(Range):
    """The search range of one hyperparameter in a card.

    Attributes:
        datasets: MLRC's final ends by dataset, in place of `low` and `high`. They were widened where a search reached
            them.
        initial: MLRC's ends before they were widened, by dataset, where they differ.
        published_as: Name of the hyperparameter in the published tables.
    """

    scale: Scale = "linear"
    datasets: dict[str, Range] = Field(default={})
    initial: dict[str, Range] = Field(default={})
    published_as: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.scale == "choice":
            if not self.choices:
                raise ValueError("scale choice needs choices")
            if self.datasets or self.initial:
                raise ValueError("scale choice has choices, not bounds; remove the bounds")
            return self
        of_datasets = (*self.datasets.values(), *self.initial.values())
        if any(ends.model_fields_set != {"low", "high"} for ends in of_datasets):
            raise ValueError("a dataset has low and high, and nothing else")
        for low, high in ((self.low, self.high), *((ends.low, ends.high) for ends in of_datasets)):
            numbers = isinstance(low, float) and isinstance(high, float)
            if low is None or high is None or low == high or (numbers and float(low) > float(high)):
                raise ValueError("needs low and high with low < high")
            self.model_copy(update={"low": low, "high": high}).check_ends()
        return self

    def on(self, dataset: str, bounds: BoundsChoice) -> Range:
        """Return the range on a dataset, which may name the batch size."""
        ends = self.datasets.get(dataset, self)
        if bounds == "initial":
            ends = self.initial.get(dataset, ends)
        kept = self.model_dump(include=Range.model_fields.keys() - {"low", "high"})
        return Range(**kept, low=ends.low, high=ends.high)


class Card(Record):
    """A method with its source, its search space and the settings and scores that were published.

    Attributes:
        key: Name of the method: that of the card's file, which need not repeat it.
        title: Name of the method in tables.
        source: The paper that the method comes from.
        papers: Addresses of the papers in `source`, which start with https://.
        method: The method. Files have its parts beside the other keys; paths in names are relative to the card.
        search: Search ranges by hyperparameter.
        search_of_base: Ranges of the loss that this one is around, which are searched where spaces are to be equal.
        published_as: Name of the method in the published tables.
        published: The hyperparameters that the source reports as best, by dataset.
        printed: The scores that the source prints, in percent, by dataset and metric; tables name them in a note.
        fixed: Hyperparameters that are set instead of searched, by dataset; those of "" are for all other datasets.
        notes: Remarks about the method.
    """

    key: Title
    title: Title
    source: str
    papers: tuple[Address, ...] = ()
    method: Method
    search: dict[str, CardRange] = Field(default={})
    search_of_base: dict[str, CardRange] = Field(default={})
    published_as: str | None = None
    published: dict[str, dict[str, JsonValue]] = Field(default={})
    printed: dict[str, dict[Metric, Percentage]] = Field(default={})
    fixed: dict[str, dict[str, JsonValue]] = Field(default={})
    notes: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _gather_method(cls, values: Any) -> Any:
        """Put the parts of the method together, which files have beside the other keys."""
        if not isinstance(values, dict) or "method" in values:
            return values
        rest = {key: value for key, value in values.items() if key not in _OF_METHOD}
        method = {key: value for key, value in values.items() if key in _OF_METHOD}
        return {**rest, "method": {"name": values.get("key"), **method}}

    def fixed_on(self, dataset: str) -> dict[str, JsonValue]:
        """Return the hyperparameters that are set instead of searched on a dataset."""
        return self.fixed.get(dataset, self.fixed.get("", {}))


def card_file(name: str) -> Path:
    """Return the file of a card, given its name or path; raise InputError if there is none."""
    return named_file(name, METHODS, "method")


def read_card(path: Path) -> Card:
    """Read a card's file without building the card's classes; a file that has not changed is read once."""
    return _read_once(path, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _read_once(path: Path, _changed: int) -> Card:
    content = read_mapping(path)
    if content.setdefault("key", path.stem) != path.stem:
        raise InputError(f"{path}: key {content['key']!r} must be the file's name {path.stem!r}; leave the key out")
    card = validated(Card, content, str(path))
    method = card.method.renamed(lambda name: relative_name(name, path.parent))
    if method.batch.samples_per_class == 0:
        method = method.at({})  # Shuffled images come in whole passes, whatever is set later.
    return card.model_copy(update={"method": method})


def suite_cards(methods: Iterable[str]) -> dict[str, Card]:
    """Return the suite's cards of those methods that it has, by key, in their order."""
    names = set(card_names())
    return {method: read_card(card_file(method)) for method in methods if method in names}


def card_names() -> list[str]:
    """Return the names of the cards that come with the suite."""
    return names_in(METHODS)
