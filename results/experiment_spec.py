"""An experiment as a value: which methods are compared on what, and how."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from results.experiment_names import first_name
from results.mlrc_constants import FOLDS, REPRODUCTIONS, TRIALS
from results.training_spec import ImageSettings, TrainingSettings, TrunkSpec
from results.values import Record, fingerprint_of


class SamplerSettings(Record):
    """The sampler's arguments, all of them explicit: library defaults change between releases."""

    name: Literal["GPSampler"] = "GPSampler"
    startup_trials: int = 5
    startup: Literal["scrambled_sobol"] = "scrambled_sobol"
    deterministic_objective: bool = False


class Bounds(Record):
    """A range that replaces the card's own."""

    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> "Bounds":
        if self.low >= self.high:
            raise ValueError("needs low < high")
        return self


class Variant(Record):
    """A row made of a card: some of its hyperparameters set (by target) and no longer searched, for ablations."""

    of: str
    key: str
    title: str
    set: dict[str, JsonValue]


class DataChoice(Record):
    """Which dataset. root: folder of its images, given with --data for most. subset: a part of the published one."""

    name: str
    root: Path | None = None
    subset: bool = False
    skip_broken_images: bool = False


class SearchSettings(Record):
    """trials: settings tried per method; 0 takes the values that each method's source published.

    bounds: MLRC's search ranges as it ended or as it began. ranges: by method and hyperparameter, bounds of this
    experiment's own. published: name of the published values that are taken where nothing is searched; None takes those
    for the dataset. MLRC published other values for batches of 256.
    """

    later = frozenset({"ranges", "published"})

    trials: int = Field(default=TRIALS, ge=0)
    bounds: Literal["widened", "initial"] = "widened"
    sampler: SamplerSettings = SamplerSettings()
    ranges: dict[str, dict[str, Bounds]] = Field(default={})
    published: str | None = None


class ProxySettings(Record):
    """How losses with a learning rate of their own are trained: papers set it as a multiple of the network's.

    warmup_passes: passes over the training images with a frozen trunk. warmup_steps: steps in their place.
    """

    later = frozenset({"warmup_steps"})

    lr_multiplier: float = Field(gt=0)
    warmup_passes: int = Field(default=0, ge=0)
    warmup_steps: int | None = Field(default=None, ge=0)


class Experiment(Record):
    """One comparison: methods on one dataset under equal conditions. A file holds one or, as panels, several.

    methods: cards, in the order of the table's rows. variants: further rows, made of cards. seed: base of all seeds.
    folds: how many of the four are trained. split: which classes train; None is the protocol's own. settings: by
    method, hyperparameters that are set here and not searched. metrics: further test metrics. test_curves: record test
    scores all along the reproductions' trainings, to show what peeking would be worth. normalization: of all methods'
    embeddings before they are compared; None takes what each loss asks for.
    """

    later = frozenset({"split", "embedder_bias", "proxies", "settings", "metrics", "test_curves", "normalization"})

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
    reproductions: int = Field(default=REPRODUCTIONS, ge=1)
    folds: int = Field(default=FOLDS, ge=1, le=FOLDS)
    seed: int = 0
    split: Literal["mlrc", "mlrc_conventional", "conventional"] | None = None
    embedder_bias: bool = True
    proxies: ProxySettings | None = None
    settings: dict[str, dict[str, JsonValue]] = Field(default={})
    metrics: tuple[str, ...] = ()
    test_curves: bool = False
    normalization: Literal["unit", "ball"] | None = None

    def fingerprint(self, name: str, data_fingerprint: str) -> str:
        """The name of this experiment's rows in the store: a hash of all that could change its table.

        Args:
            name: the experiment's name; one that was renamed counts under its first name, so that its rows are found.
            data_fingerprint: fingerprint of the dataset. The folder of its images does not count.
        """
        settings = self.model_dump(
            mode="json", exclude={"title": True, "methods": True, "variants": True, "dataset": {"root"}}
        )
        return fingerprint_of([first_name(name), data_fingerprint, settings])

    def without_folder(self) -> dict[str, Any]:
        """The experiment as JSON values, without the folder of its images, which differs from machine to machine."""
        return self.model_dump(mode="json", exclude={"dataset": {"root"}})
