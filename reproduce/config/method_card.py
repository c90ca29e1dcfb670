"""Reads method cards (reproduce/methods/*.yaml), which define methods as data.

Cards are read without torch, so that tables can name hyperparameters. `open_method` checks that the classes of a card
can be built.
"""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from reproduce.config.strict_yaml import METHODS, named_file, names_in, read_mapping, validated
from reproduce.errors import InputError
from results.spec.experiment_spec import Metric, Title
from results.spec.search_settings import Bounds, Scale, check_bounds
from results.spec.training_spec import Component, WeightedComponent, relative_name
from results.spec.trunk_spec import EmbedderSpec
from results.values import Record

Address = Annotated[str, Field(pattern=r"^https://[^\s\"<>]+$")]
"""Address of a page on the web."""

Percentage = Annotated[float, Field(ge=0, le=100)]

BATCH_SIZE = "$batch_size"
"""A bound of a search range that is the batch size of the experiment."""

Bound = float | Literal["$batch_size"]


class SearchRange(Record):
    """The search range of one hyperparameter.

    Attributes:
        scale: Scale on which values are drawn.
        low: Lowest value on datasets that are not in `datasets`; `$batch_size` is the batch size of the experiment.
        high: Highest value on datasets that are not in `datasets`, or `$batch_size`.
        choices: The values of scale `choice`.
        exhaustive: Whether every whole number is tried once if the budget allows it.
        datasets: MLRC's final bounds by dataset. They were widened where a search reached them.
        initial: MLRC's bounds before they were widened, by dataset, where they differ.
        published_as: Name of the hyperparameter in the published tables.
    """

    scale: Scale = "linear"
    low: Bound | None = None
    high: Bound | None = None
    choices: tuple[JsonValue, ...] | None = None
    exhaustive: bool = False
    datasets: dict[str, Bounds] = Field(default={})
    initial: dict[str, Bounds] = Field(default={})
    published_as: str | None = None

    @model_validator(mode="after")
    def _check_bounds(self) -> "SearchRange":
        if self.scale == "choice":
            if not self.choices:
                raise ValueError("scale choice needs choices")
            if self.low is not None or self.high is not None or self.datasets or self.initial:
                raise ValueError("scale choice has choices, not bounds; remove the bounds")
        elif self.low is None or self.high is None or self._is_empty():
            raise ValueError("needs low and high with low < high")
        else:
            # A batch size is a whole number above 0, as 1 is.
            check_bounds(self.scale, *(1 if isinstance(bound, str) else bound for bound in (self.low, self.high)))
            for bounds in (*self.datasets.values(), *self.initial.values()):
                check_bounds(self.scale, bounds.low, bounds.high)
        if self.exhaustive and self.scale != "int":
            raise ValueError("exhaustive needs scale int")
        return self

    def _is_empty(self) -> bool:
        if isinstance(self.low, str) or isinstance(self.high, str):
            return self.low == self.high
        return self.low is None or self.high is None or self.low >= self.high

    def bounds_on(
        self, dataset: str, bounds: Literal["widened", "initial"], batch_size: int
    ) -> tuple[float | None, float | None]:
        """Return the lowest and the highest value on a dataset; both are None for choices."""
        dataset_bounds = self.datasets.get(dataset)
        if bounds == "initial":
            dataset_bounds = self.initial.get(dataset, dataset_bounds)
        if dataset_bounds is not None:
            return dataset_bounds.low, dataset_bounds.high
        low, high = (batch_size if bound == BATCH_SIZE else bound for bound in (self.low, self.high))
        assert not isinstance(low, str)
        assert not isinstance(high, str)
        return low, high


class Batch(Record):
    """Batch composition.

    Attributes:
        samples_per_class: Images per class in a batch; 0 draws images at random.
        classes: `once` keeps a class from a batch that has it already, for losses that rank a query's own class among
            all others. `any` is MLRC's: a batch over two passes can have a class twice.
    """

    samples_per_class: int = Field(default=4, ge=0)
    classes: Literal["any", "once"] = "any"


class Warmup(Record):
    """Warm-up, during which the trunk is frozen.

    Attributes:
        passes: Number of passes over the training images; None takes the loss's default. A pass is an epoch in the
            sense of the methods' authors, while an epoch of MLRC is a number of iterations.
    """

    passes: int | None = None


class LossOptimizer(Record):
    """Optimizer settings of the loss's parameters. None takes the settings of the network.

    Attributes:
        lr: Learning rate.
        weight_decay: Weight decay.
    """

    lr: float | None = None
    weight_decay: float | None = None


class MethodCard(Record):
    """A method: its loss and miner, batches, optimizer group, search space, published optima and source.

    Attributes:
        key: Name of the method: that of the card's file, which need not repeat it.
        title: Name of the method in tables.
        source: The paper that the method comes from.
        papers: Addresses of the papers in `source`, which start with https://.
        loss: The loss; None evaluates the untrained trunk. The name is that of a class of this suite, of
            pytorch-metric-learning or of an installed package, or `./my_losses.py:MyLoss` or
            `my_package.module:MyLoss`. Paths are relative to the card. Miner and regularizer are named likewise.
        miner: The miner, if any.
        embedding_regularizer: A regularizer of the embeddings with its weight, if any.
        batch: Batch composition.
        loss_optimizer: Optimizer settings of the loss's parameters.
        warmup: Warm-up with a frozen trunk.
        search: Search ranges by hyperparameter.
        published_as: Name of the method in the published tables.
        published: The hyperparameters that the source reports as best, by dataset.
        printed: The scores that the source prints, in percent, by dataset and metric; tables name them in a note.
        fixed: Hyperparameters that are set instead of searched, by dataset; those of "" are for all other datasets.
        embedder: How the embedder of a card without loss is computed: a closed form over the trunk's features of the
            training images, such as `{init: lda}`; `principal_components` is `{init: pca}`, and `test_components` takes
            the principal components of the test images. None leaves out the embedder.
        notes: Remarks about the method.
    """

    key: Title
    title: Title
    source: str
    papers: tuple[Address, ...] = ()
    loss: Component | None
    miner: Component | None = None
    embedding_regularizer: WeightedComponent | None = None
    batch: Batch = Batch()
    loss_optimizer: LossOptimizer = LossOptimizer()
    warmup: Warmup = Warmup()
    search: dict[str, SearchRange] = Field(default={})
    published_as: str | None = None
    published: dict[str, dict[str, JsonValue]] = Field(default={})
    printed: dict[str, dict[Metric, Percentage]] = Field(default={})
    fixed: dict[str, dict[str, JsonValue]] = Field(default={})
    embedder: EmbedderSpec | Literal["principal_components", "test_components"] | None = None
    notes: str | None = None

    def with_names(self, rename: Callable[[str], str]) -> Self:
        """Return the card with new names of its classes, nested ones included."""
        parts = {"loss": self.loss, "miner": self.miner, "embedding_regularizer": self.embedding_regularizer}
        return self.model_copy(update={key: part and part.renamed(rename) for key, part in parts.items()})


def card_file(name: str) -> Path:
    """Return the file of a card, given its name or path; raise InputError if there is none."""
    return named_file(name, METHODS, "method")


def read_card(path: Path) -> MethodCard:
    """Read a card's file without building the card's classes; a file that has not changed is read once."""
    return _read_once(path, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _read_once(path: Path, _changed: int) -> MethodCard:
    content = read_mapping(path)
    if content.setdefault("key", path.stem) != path.stem:
        raise InputError(f"{path}: key {content['key']!r} must be the file's name {path.stem!r}; leave the key out")
    card = validated(MethodCard, content, str(path))
    return card.with_names(lambda name: relative_name(name, path.parent))


def suite_cards(methods: Iterable[str]) -> dict[str, MethodCard]:
    """Return the suite's cards of those methods that it has, by key, in their order."""
    names = set(card_names())
    return {method: read_card(card_file(method)) for method in methods if method in names}


def card_names() -> list[str]:
    """Return the names of the cards that come with the suite."""
    return names_in(METHODS)
