"""The specification of an experiment: the methods that are compared, the dataset, and the settings."""

from typing import Any, Literal

from pydantic import ConfigDict, Field, FiniteFloat, JsonValue, model_validator

from results.data_choice import DataChoice, DrawnSplit
from results.experiment_names import first_name
from results.feature_settings import check_feature_settings, with_no_trunk
from results.mlrc_constants import FOLDS, REPRODUCTIONS, TRIALS
from results.recording_settings import RecordingSettings
from results.row_conditions import ROW_CONDITIONS, with_conditions
from results.search_bounds import check_bounds
from results.training_spec import ImageSettings, TrainingSettings
from results.trunk_spec import EmbedderSpec, TrunkSpec
from results.values import Record, canonical_json, fingerprint_of

FEWEST_FIRST_REPRODUCTIONS = 3
"""Fewest runs before the first look. After two, a method that varies far more than the others is stopped too often."""


MOST_REPRODUCTIONS, MOST_TRIALS, MOST_SEARCHES = 1000, 10_000, 100
"""Largest budgets. A larger number is a slip of the keyboard, and its trainings could not even be listed."""


class SamplerSettings(Record):
    """The search's sampler. All arguments are explicit, since defaults of Optuna change between releases.

    Attributes:
        name: Class of `optuna.samplers`.
        startup_trials: Number of trials before the sampler uses the results of earlier trials.
        startup: Sampler of the startup trials.
        deterministic_objective: Whether the sampler assumes an objective without noise.
    """

    name: Literal["GPSampler"] = "GPSampler"
    startup_trials: int = 5
    startup: Literal["scrambled_sobol"] = "scrambled_sobol"
    deterministic_objective: bool = False


class Bounds(Record):
    """A search range that replaces the range of the method card."""

    low: FiniteFloat
    high: FiniteFloat

    @model_validator(mode="after")
    def _ordered(self) -> "Bounds":
        if self.low >= self.high:
            raise ValueError("needs low < high")
        return self


class Variant(Record):
    """A further row for a method card, with some hyperparameters set instead of searched; for ablations.

    Attributes:
        of: Key of the card.
        key: Key of the row.
        title: Title of the row.
        set: Values of the hyperparameters, by target.
    """

    of: str
    key: str
    title: str
    set: dict[str, JsonValue]


class SearchSettings(Record):
    """The hyperparameter search.

    Attributes:
        trials: Number of settings tried per method; 0 takes the published values of each method.
        bounds: MLRC's search ranges: `initial` at the start of its search, `widened` at the end.
        sampler: The sampler.
        ranges: Search ranges of this experiment, by method and hyperparameter.
        published: Name of the published values that are used where nothing is searched; None takes those for the
            dataset. MLRC published other values for batches of 256.
        network_lr: Range in which the learning rate of trunk and embedder is searched for every method, on a log scale;
            None takes that of the training settings.
        searches: How often each method is searched, each time from other seeds. The reproductions are made for every
            search.
        racing: Whether a trial that is clearly behind the best trial on the same folds gets no more folds
            (`results.racing`). MLRC trains every trial on all folds.
    """

    later = frozenset({"ranges", "published", "searches", "network_lr", "racing"})

    trials: int = Field(default=TRIALS, ge=0, le=MOST_TRIALS)
    bounds: Literal["widened", "initial"] = "widened"
    sampler: SamplerSettings = SamplerSettings()
    ranges: dict[str, dict[str, Bounds]] = Field(default={})
    published: str | None = None
    searches: int = Field(default=1, ge=1, le=MOST_SEARCHES)
    racing: bool = False
    network_lr: Bounds | None = None


class ProxySettings(Record):
    """Training of losses that have their own learning rate. Papers give it as a multiple of the network's rate.

    Attributes:
        lr_multiplier: Learning rate of the loss divided by that of the network.
        warmup_passes: Passes over the training images with a frozen trunk.
        warmup_steps: Steps with a frozen trunk, instead of `warmup_passes`.
    """

    later = frozenset({"warmup_steps"})

    lr_multiplier: float = Field(gt=0)
    warmup_passes: int = Field(default=0, ge=0)
    warmup_steps: int | None = Field(default=None, ge=0)


class PrimaryScore(Record):
    """The score that decides which method is better. All pairs of methods are tested in it, and no other score is.

    Attributes:
        metric: The metric.
        embeddings: Kind of the tested embeddings.
        test: Test of the pairs. `moderated t` uses all runs and borrows variance from the other methods; `paired t`
            uses matched runs only; `Welch t` uses all runs and borrows nothing.
        margin: Methods that differ by less than this many percentage points count as equal.
    """

    later = frozenset({"test", "margin"})

    metric: Literal["map_at_r", "r_precision", "precision_at_1"] = "map_at_r"
    embeddings: Literal["separated", "concatenated"] = "concatenated"
    test: Literal["moderated t", "paired t", "Welch t"] = "moderated t"
    margin: float = Field(default=0.5, gt=0)


class Experiment(Record):
    """A comparison of methods on one dataset under equal conditions.

    An experiment file holds one experiment or, as panels, several.

    Attributes:
        title: Title of the tables.
        protocol: The protocol.
        dataset: The dataset.
        methods: Keys of the method cards, in the order of the table's rows.
        variants: Further rows.
        trunk: The trunk.
        embedding_size: Size of one fold's embedding.
        images: Transforms of the images.
        training: Length, optimizer and precision of the trainings.
        search: The hyperparameter search.
        reproductions: Re-trainings of each method's best setting. Files may write `{first: 3, at most: 10}`.
        first_reproductions: Re-trainings before the first look. After it, and after every further re-training, methods
            that are clearly behind the leader get no more. None makes all re-trainings of every method.
        folds: How many of the four folds are trained.
        seed: Base of all seeds.
        split: The split of the classes; None takes the protocol's default, and `{seed: 3}` draws its halves at random.
        embedder_bias: Whether the embedder's linear layer has a bias.
        proxies: Training of losses that have their own learning rate; None takes the values of the cards.
        settings: Hyperparameters that are set instead of searched, by method.
        metrics: Names of further test metrics.
        test_curves: Whether to record test scores during the reproductions' trainings, to measure the gain from
            peeking.
        normalization: Normalization of all methods' embeddings before they are compared; None takes that of each loss.
        conditions: Settings of single rows that differ from those of the experiment, by row (a method or variant) and
            dotted key. Experiment files call it `with`. Such a row is marked, and is not tested against other rows.
        primary: The score in which the methods are tested; None takes MAP@R, concatenated if there are several folds.
        peeking_metric: The score by which the paper's code chooses on test classes. The gain from peeking is shown in
            it. It changes no training and no run, so it is not part of the experiment's fingerprint.
        recordings: Embeddings to keep during the reproductions' trainings; None keeps none.
        embedder: Hidden layers and start of the embedder of the methods with a loss.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    later = frozenset(
        {
            *("split", "embedder_bias", "proxies", "settings", "metrics", "test_curves", "normalization"),
            *("conditions", "primary", "peeking_metric", "first_reproductions", "recordings"),
            "embedder",
        }
    )

    title: str
    protocol: Literal["mlrc", "standard"] = "mlrc"
    dataset: DataChoice
    methods: tuple[str, ...] = Field(min_length=1)
    variants: tuple[Variant, ...] = ()
    trunk: TrunkSpec
    embedding_size: int = Field(default=128, ge=1)
    images: ImageSettings = ImageSettings()
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()
    reproductions: int = Field(default=REPRODUCTIONS, ge=1, le=MOST_REPRODUCTIONS)
    folds: int = Field(default=FOLDS, ge=1, le=FOLDS)
    seed: int = 0
    split: Literal["mlrc", "mlrc_conventional", "conventional"] | DrawnSplit | None = None
    embedder_bias: bool = True
    proxies: ProxySettings | None = None
    settings: dict[str, dict[str, JsonValue]] = Field(default={})
    metrics: tuple[str, ...] = ()
    test_curves: bool = False
    normalization: Literal["unit", "ball"] | None = None
    conditions: dict[str, dict[str, JsonValue]] = Field(default={}, validation_alias="with")
    primary: PrimaryScore | None = None
    peeking_metric: Literal["precision_at_1", "r_precision", "map_at_r"] = "map_at_r"
    first_reproductions: int | None = Field(default=None, ge=FEWEST_FIRST_REPRODUCTIONS)
    recordings: RecordingSettings | None = None
    embedder: EmbedderSpec = EmbedderSpec()

    @model_validator(mode="before")
    @classmethod
    def _without_trunk(cls, values: Any) -> Any:
        """Fill in the trunk of a dataset of features, which has none."""
        return with_no_trunk(values) if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> "Experiment":
        check_feature_settings(self.dataset.name, self.trunk, self.images)
        if self.search.network_lr is not None:
            check_bounds("log", self.search.network_lr.low, self.search.network_lr.high)
        if self.proxies is not None and self.search.network_lr is not None:
            raise ValueError("search: network_lr has no fixed rate for proxies: lr_multiplier to multiply; remove one")
        if self.embedder.init == "pca" and not self.embedder_bias:
            raise ValueError("embedder: init: pca needs the bias, which centres the features; remove embedder_bias")
        return self

    @model_validator(mode="before")
    @classmethod
    def _read_looks(cls, values: Any) -> Any:
        """Read `reproductions: {first: 3, at most: 10}`."""
        if isinstance(values, dict) and isinstance(looks := values.get("reproductions"), dict):
            if set(looks) != {"first", "at most"}:
                raise ValueError("reproductions takes a number, or `first` and `at most`")
            return {**values, "reproductions": looks["at most"], "first_reproductions": looks["first"]}
        return values

    @model_validator(mode="after")
    def _looks_are_possible(self) -> "Experiment":
        if self.first_reproductions is not None:
            if self.first_reproductions >= self.reproductions:
                raise ValueError("needs fewer first reproductions than reproductions at most")
            if self.search.searches > 1:
                raise ValueError("reproductions cannot be stopped early if the search is repeated; set searches to 1")
        return self

    @model_validator(mode="after")
    def _recorded_images_exist(self) -> "Experiment":
        if self.recordings is not None and self.recordings.images == "validation" and self.protocol == "standard":
            raise ValueError("recordings: protocol standard has no validation images in its final training")
        return self

    @property
    def rows(self) -> tuple[str, ...]:
        """Keys of the rows: the methods, then the variants."""
        return (*self.methods, *(variant.key for variant in self.variants))

    def for_row(self, row: str) -> "Experiment":
        """Return the experiment with the conditions of one row, and without those of other rows.

        Args:
            row: Key of a method or variant.

        Raises:
            ValueError: A key of the row's conditions does not exist, or its value is wrong.
        """
        if not self.conditions:
            return self
        common = self.model_copy(update={"conditions": {}})
        changes = self.conditions.get(row, {})
        return Experiment.model_validate(with_conditions(common.model_dump(), changes)) if changes else common

    def conditions_of(self, row: str) -> str:
        """Return everything but the method that decides a row's scores, as a text. Only equal texts may be compared."""
        settings = self.for_row(row).model_dump(mode="json")
        kept = ("protocol", "folds", "split", *ROW_CONDITIONS)
        return canonical_json([self.dataset.name, *(settings.get(name) for name in kept)])

    def comparable_rows(self) -> frozenset[str]:
        """Return the rows under the experiment's common conditions. Only these are tested against each other."""
        common = self.conditions_of("")
        return frozenset(row for row in self.rows if self.conditions_of(row) == common)

    def fingerprint(self, name: str, data_fingerprint: str) -> str:
        """Return the key of this experiment in the store: a hash of everything that could change its table.

        Args:
            name: The experiment's name. A renamed experiment counts under its first name, so that its rows are found.
            data_fingerprint: Fingerprint of the dataset. The paths of images and split are not part of the hash.
        """
        left_out = dict.fromkeys(("title", "methods", "variants", "peeking_metric"), True)
        settings = self.model_dump(mode="json", exclude={**left_out, "dataset": {"root", "split"}})
        return fingerprint_of([first_name(name), data_fingerprint, settings])

    def without_folder(self) -> dict[str, Any]:
        """Return the experiment as JSON values, without the folder of its images, which differs between machines."""
        return self.model_dump(mode="json", exclude={"dataset": {"root"}})
