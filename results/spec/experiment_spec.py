"""The specification of an experiment: the methods that are compared, the dataset, and the settings."""

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer, model_validator

from results.spec.conditions import Conditions, set_at
from results.spec.data_choice import FEATURES, DataChoice, DrawnSplit
from results.spec.mlrc_constants import FOLDS, REPRODUCTIONS
from results.spec.search_settings import SearchSettings
from results.spec.trunk_spec import NO_TRUNK, TrunkSpec
from results.values import AMOUNT, FREE, UNNAMED, Record, fingerprint_of, flat, marked

MOST_REPRODUCTIONS = 1000
"""A larger number is a slip of the keyboard, and its trainings could not even be listed."""

MEANT_OTHERWISE = ("all", "best")
"""What `compare` can name beside a method."""

CARD_FILES = (".yaml", ".yml")

Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""What stands in tables, figures and terminals, so it has no control characters."""


class Variant(Record):
    """A further row for a method card, with some hyperparameters set instead of searched; for ablations.

    Attributes:
        of: Key of the card.
        key: Key of the row.
        set: Values of the hyperparameters, by target.
        reading: Whether the row is one way to read a recipe that its source leaves open. The readings of a card are one
            family: each shows the range of all.
    """

    of: str
    key: str
    title: Title
    set: dict[str, JsonValue]
    reading: bool = Field(default=False, exclude_if=lambda value: not value)


class ProxySettings(Record):
    """Training of losses that have their own learning rate. Papers give it as a multiple of the network's rate.

    Attributes:
        lr_multiplier: Learning rate of the loss divided by that of the network.
        warmup_passes: Passes over the training images with a frozen trunk.
        warmup_steps: Steps with a frozen trunk, instead of `warmup_passes`.
    """

    lr_multiplier: float = Field(gt=0)
    warmup_passes: int = Field(default=0, ge=0)
    warmup_steps: int | None = Field(default=None, ge=0)


Metric = Literal["map_at_r", "r_precision", "precision_at_1"]


class PrimaryScore(Record):
    """The score that decides which method is better, and the comparisons that are asked for in it.

    Attributes:
        embeddings: Kind of the tested embeddings.
        margin: Methods that differ by less than this many percentage points count as equal.
        compare: `all` pairs of methods, each with the `best`, or each with the method of this name. Fewer comparisons
            see smaller differences.
    """

    metric: Metric = "map_at_r"
    embeddings: Literal["separated", "concatenated"] = "concatenated"
    margin: float = Field(default=0.5, gt=0)
    compare: str = "all"


class Contrast(Record):
    """A question about groups of methods: the mean of those in `a` minus the mean of those in `b`.

    Attributes:
        title: What it asks, such as `an image sums over the negatives`.
    """

    title: Title
    a: tuple[str, ...] = Field(min_length=1)
    b: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = (*self.a, *self.b)
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]} stands in it twice; name each method once, in a or in b")
        return self


class Experiment(Record):
    """A comparison of methods on one dataset under equal conditions.

    An experiment file holds one experiment or, as panels, several.

    Attributes:
        methods: Keys or files of the method cards, in the order of the table's rows.
        conditions: Network, images and training, for all rows. Files have its fields beside those of the experiment.
        reproductions: Re-trainings of each method's best setting.
        reproduction_epochs: Most epochs of a reproduction, where it may train longer than the trials of the search
            (`training.max_epochs`): the verdict is then that of the longer trainings, and their best models up to the
            end of a trial are tested too. None trains as long as a trial.
        folds: How many of the four folds are trained.
        seed: Base of all seeds.
        split: The split of the classes; None takes the protocol's default, and `{seed: 3}` draws its halves at random.
        proxies: Training of losses that have their own learning rate; None takes the values of the cards. It decides
            hyperparameters of methods, so it is no part of the conditions.
        settings: Hyperparameters that are set instead of searched, by method.
        test_curves: Whether to record test scores during the reproductions' trainings, to measure the gain from
            peeking.
        changes: Conditions of single rows that differ from those of the experiment, by row (a method or variant) and
            dotted key. Experiment files call it `with`. Such a row is marked, and is not tested against other rows.
        primary: The score in which the methods are tested; None takes MAP@R, concatenated if there are several folds.
        contrasts: Questions about the means of groups of methods, which the primary score answers beside the pairs.
            They change no training and no run.
        peeking_metric: The score by which the paper's code chooses on test classes. The gain from peeking is shown in
            it. It changes no training and no run, so it is not part of the experiment's fingerprint.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)
    title: Annotated[Title, FREE, UNNAMED]
    protocol: Literal["mlrc", "standard"] = "mlrc"
    dataset: DataChoice
    methods: Annotated[tuple[str, ...], FREE, UNNAMED] = Field(min_length=1)
    variants: Annotated[tuple[Variant, ...], FREE, UNNAMED] = ()
    conditions: Conditions
    search: SearchSettings = SearchSettings()
    reproductions: Annotated[int, FREE, AMOUNT] = Field(default=REPRODUCTIONS, ge=1, le=MOST_REPRODUCTIONS)
    reproduction_epochs: int | None = Field(default=None, ge=1, exclude_if=lambda value: value is None)
    folds: int = Field(default=FOLDS, ge=1, le=FOLDS)
    seed: Annotated[int, FREE] = Field(default=0, ge=-(2**63), lt=2**63)
    split: Literal["mlrc", "mlrc_conventional", "conventional"] | DrawnSplit | None = None
    proxies: ProxySettings | None = None
    settings: dict[str, dict[str, JsonValue]] = Field(default={})
    metrics: Annotated[tuple[str, ...], FREE] = ()
    test_curves: Annotated[bool, FREE] = False
    changes: dict[str, dict[str, JsonValue]] = Field(default={}, alias="with")
    primary: Annotated[PrimaryScore | None, FREE] = None
    contrasts: Annotated[tuple[Contrast, ...], FREE, UNNAMED] = Field(default=(), exclude_if=lambda value: not value)
    peeking_metric: Annotated[Metric, FREE, UNNAMED] = "map_at_r"

    @model_validator(mode="before")
    @classmethod
    def _gather_conditions(cls, values: Any) -> Any:
        """Put the conditions together, which files have beside the other settings. Features have no trunk."""
        if not isinstance(values, dict) or "conditions" in values:
            return values
        rest = {key: value for key, value in values.items() if key not in Conditions.model_fields}
        conditions = {key: value for key, value in values.items() if key in Conditions.model_fields}
        dataset = values.get("dataset")
        name = dataset.get("name") if isinstance(dataset, dict) else getattr(dataset, "name", None)
        if name == FEATURES:
            conditions.setdefault("trunk", TrunkSpec(name=NO_TRUNK, weights=NO_TRUNK))
        return {**rest, "conditions": conditions}

    @model_serializer(mode="wrap")
    def _as_in_files(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        settings: dict[str, Any] = handler(self)
        conditions = settings.pop("conditions", {})
        return {**settings, **conditions}

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> Self:
        rows = self.rows
        if taken := [key for key in rows if key in MEANT_OTHERWISE]:
            raise ValueError(f"{taken[0]}: 'compare: {taken[0]}' has another meaning; choose another key for the row")
        _check_trunk(self.dataset.name, self.conditions.trunk)
        longer, epochs = self.reproduction_epochs, self.conditions.training.max_epochs
        if longer is not None and self.protocol != "mlrc":
            raise ValueError("reproduction_epochs is for protocol mlrc; the other one chooses its epoch; remove it")
        if longer is not None and longer <= epochs:
            raise ValueError(f"reproduction_epochs must be more than training.max_epochs ({epochs}); remove it")
        if self.search.network_lr is not None and self.proxies is not None:
            raise ValueError("search: network_lr has no fixed rate for proxies: lr_multiplier to multiply; remove one")
        if self.primary is not None and self.primary.compare not in (*MEANT_OTHERWISE, *rows):
            near = get_close_matches(self.primary.compare, rows, n=1)
            raise ValueError(
                f"primary: compare: {self.primary.compare} is no method of this experiment; "
                f"{f'did you mean {near[0]}? ' if near else ''}add it, or use all, best, or one of "
                f"{', '.join(rows)}"
            )
        return self

    @property
    def rows(self) -> tuple[str, ...]:
        """Keys of the rows: the methods, then the variants. The key of a card is the name of its file."""
        methods = (PurePath(method).stem if method.endswith(CARD_FILES) else method for method in self.methods)
        return (*methods, *(variant.key for variant in self.variants))

    @property
    def planned_embeddings(self) -> Literal["separated", "concatenated"]:
        """Kind of embeddings that the methods are tested in unless the file names another."""
        # A run of protocol `standard` tests one model, and so does one of `mlrc` on the conventional split.
        one_model = self.folds == 1 or self.protocol == "standard" or self.split == "conventional"
        return "separated" if one_model else "concatenated"

    def for_row(self, row: str) -> Self:
        """Return the experiment with the conditions of one row, and without those of other rows."""
        if not self.changes:
            return self
        settings = {**dict(self.conditions), "proxies": self.proxies}
        settings = {key: value.model_dump() if isinstance(value, Record) else value for key, value in settings.items()}
        for key, value in self.changes.get(row, {}).items():
            set_at(settings, key, value)
        return self._with(proxies=settings.pop("proxies"), conditions=settings, changes={})

    def only(self, row: str) -> Self:
        """Return the experiment with one of its rows, or with the method of this name, and with nothing to compare."""
        methods = {PurePath(method).stem: method for method in self.methods if method.endswith(CARD_FILES)}
        variants = tuple(variant for variant in self.variants if variant.key == row)
        return self._with(
            methods=tuple(variant.of for variant in variants) or (methods.get(row, row),),
            variants=variants,
            changes={key: change for key, change in self.changes.items() if key == row},
            search=self.search.model_copy(update={"default": False, "until_decided": False}),
            primary=None,
            contrasts=(),
        )

    def with_search(self, **changes: Any) -> Self:
        """Return the experiment with other settings of the search, by name."""
        return self._with(search=self.search.model_copy(update=changes))

    def with_conditions(self, **changes: Any) -> Self:
        """Return a copy with other conditions, by name of the condition."""
        return self._with(conditions=self.conditions.model_copy(update=changes))

    def _with(self, **changes: Any) -> Self:
        return self.model_validate({**dict(self), **changes})

    def comparable_rows(self) -> frozenset[str]:
        """Return the rows under the experiment's common conditions. Only these are tested against each other."""
        rows = {row: self.for_row(row) for row in self.rows}
        common = (self.conditions, self.proxies)
        return frozenset(row for row, own in rows.items() if (own.conditions, own.proxies) == common)

    def fingerprint(self, name: str, data_fingerprint: str) -> str:
        """Return the key of this experiment in the store: a hash of everything that could change its table."""
        return fingerprint_of([self.fingerprint_without_rows(name, data_fingerprint), sorted(self.rows)])

    def fingerprint_without_rows(self, name: str, data_fingerprint: str) -> str:
        """Return what this experiment has in common with those that differ in their methods and variants alone."""
        settings = self.identity()
        for part, _, last in (key.rpartition(".") for key in UNNAMED_SETTINGS):
            (settings[part] if part else settings).pop(last, None)
        if self.search.until_decided:
            del settings["search"]["searches"]  # The plan decides how many there are.
        return fingerprint_of([name, data_fingerprint, settings])

    def differences(self, other: Self) -> dict[str, tuple[object, object]]:
        """Return the settings in which two experiments differ, by dotted key, sorted; None where one has none."""
        first, second = (dict(flat(one.model_dump())) for one in (self, other))
        keys = sorted(first.keys() | second.keys())
        return {key: (first.get(key), second.get(key)) for key in keys if first.get(key) != second.get(key)}

    def without_folder(self) -> dict[str, Any]:
        """Return the experiment as JSON values, without the folder of its images, which differs between machines."""
        return self.model_dump(mode="json", exclude={"dataset": {"root"}})


FREE_SETTINGS, AMOUNTS, UNNAMED_SETTINGS = (
    tuple(key.removeprefix("conditions.") for key in marked(Experiment, mark)) for mark in (FREE, AMOUNT, UNNAMED)
)
"""Dotted keys of the settings with these marks, as in files."""


def is_among(key: str, keys: Collection[str]) -> bool:
    """Return whether a dotted key is one of these or a part of one."""
    return any(key == one or key.startswith(f"{one}.") for one in keys)


def _check_trunk(dataset: str, trunk: TrunkSpec) -> None:
    """Refuse a trunk for a dataset that has no images."""
    if dataset == FEATURES:
        if trunk.model_copy(update={"width": None}) != TrunkSpec(name=NO_TRUNK, weights=NO_TRUNK):
            raise ValueError("dataset features has no images for a trunk; remove the key trunk")
    elif trunk.name == NO_TRUNK:
        raise ValueError(f"trunk none is for dataset features; name a trunk for the images of {dataset}")
    elif trunk.width is not None:
        raise ValueError("trunk: width is set by the suite; remove it")
