"""Experiments: which methods are compared on what, and how (reproduce/experiments/*.yaml)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue, ValidationError, field_validator

from protocols.metrics.registry import check_metric_names
from protocols.search import SamplerSettings
from protocols.splits import FOLDS
from reproduce.cards import Bounds, Variant
from reproduce.errors import InputError
from reproduce.reading import EXPERIMENTS, describe, merged, named_file, names_in, read_mapping
from results.specs import ImageSettings, TrainingSettings, TrunkSpec
from results.values import Record, fingerprint_of


class DataChoice(Record):
    """Which dataset. root: folder of its images, given with --data for most. subset: a part of the published one."""

    name: str
    root: Path | None = None
    subset: bool = False
    skip_broken_images: bool = False


class SearchSettings(Record):
    """trials: settings tried per method; 0 takes the values that each method's source published for the dataset.

    bounds: MLRC's search ranges as it ended or as it began. ranges: by method and hyperparameter, bounds of this
    experiment's own.
    """

    later = frozenset({"ranges"})

    trials: int = Field(default=50, ge=0)
    bounds: Literal["widened", "initial"] = "widened"
    sampler: SamplerSettings = SamplerSettings()
    ranges: dict[str, dict[str, Bounds]] = Field(default={})


class ProxySettings(Record):
    """How losses with a learning rate of their own are trained: papers set it as a multiple of the network's.

    warmup_passes: passes over the training images with a frozen trunk.
    """

    lr_multiplier: float = Field(gt=0)
    warmup_passes: int = Field(default=0, ge=0)


class Experiment(Record):
    """One comparison: methods on one dataset under equal conditions. A file holds one or, as panels, several.

    methods: cards, in the order of the table's rows. variants: further rows, made of cards. seed: base of all seeds.
    folds: how many of the four are trained. split: which classes train; None is the protocol's own. settings: by
    method, hyperparameters that are set here and not searched. metrics: further test metrics. test_curves: record test
    scores all along the reproductions' trainings, to show what peeking would be worth.
    """

    later = frozenset({"split", "embedder_bias", "proxies", "settings", "metrics", "test_curves"})

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
    reproductions: int = Field(default=10, ge=1)
    folds: int = Field(default=FOLDS, ge=1, le=FOLDS)
    seed: int = 0
    split: Literal["mlrc", "mlrc_conventional", "conventional"] | None = None
    embedder_bias: bool = True
    proxies: ProxySettings | None = None
    settings: dict[str, dict[str, JsonValue]] = Field(default={})
    metrics: tuple[str, ...] = ()
    test_curves: bool = False

    @field_validator("metrics")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        check_metric_names(names)
        return names

    def fingerprint(self, name: str, data_fingerprint: str) -> str:
        """What names this experiment's rows in the store: all that could change its table but not where data lie."""
        settings = self.model_dump(
            mode="json", exclude={"title": True, "methods": True, "variants": True, "dataset": {"root"}}
        )
        return fingerprint_of([name, data_fingerprint, settings])


def load_experiments(name: str, overrides: Mapping[str, Any]) -> dict[str, Experiment]:
    """The experiments of a file, by the names they have in the store; raises InputError.

    name: of a file that comes with the suite, a path, or either with `/panel` behind it. overrides: dotted, such as
    {"search.trials": 2}. `image_size` overrides the crop and scales the resize before it, so that a crop shows the same
    part of an image. A file with `panels` makes one experiment of each: what all share, with the panel's own keys on
    top.
    """
    path, wanted = _file_and_panel(name)
    content = read_mapping(path)
    panels = content.pop("panels", None)
    if panels is None:
        if wanted is not None:
            raise InputError(f"{path} has no panels; leave out {wanted!r}")
        return {path.stem: _validated(path, "", content, overrides)}
    if not isinstance(panels, dict) or not all(isinstance(panel, dict) for panel in panels.values()):
        raise InputError(f"{path}: panels must be keys and values, a name and what is its own for each panel")
    if wanted is not None and wanted not in panels:
        raise InputError(f"{path}: no panel {wanted!r}; it has {', '.join(panels)}")
    return {
        f"{path.stem}/{key}": _validated(path, f"panels.{key}: ", merged(content, panel), overrides)
        for key, panel in panels.items()
        if wanted in (None, key)
    }


def load_experiment(name: str, overrides: Mapping[str, Any]) -> Experiment:
    """The one experiment of that name, which a file with several panels does not have; raises InputError."""
    experiments = load_experiments(name, overrides)
    if len(experiments) > 1:
        raise InputError(f"{name} has several panels; name one: {', '.join(experiments)}")
    return next(iter(experiments.values()))


def _file_and_panel(name: str) -> tuple[Path, str | None]:
    file, _, panel = name.rpartition("/")
    if name.endswith((".yaml", ".yml")) or not file:
        return named_file(name, [EXPERIMENTS], "experiment"), None
    return named_file(file, [EXPERIMENTS], "experiment"), panel


def _validated(path: Path, where: str, content: dict[str, Any], overrides: Mapping[str, Any]) -> Experiment:
    try:
        experiment = Experiment.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path}: {where}{describe(error)}") from error
    whole = experiment.model_dump(mode="json")
    size = overrides.get("image_size")
    if size is not None:
        images = whole["images"]
        for key in ("resize", "evaluation_resize"):
            if images.get(key) is not None:
                images[key] = round(images[key] * size / images["crop"])
        images["crop"] = size
    for key, value in overrides.items():
        if value is not None and key != "image_size":
            *outer, last = key.split(".")
            place = whole
            for part in outer:
                place = place[part]
            place[last] = value
    try:
        return Experiment.model_validate(whole)
    except ValidationError as error:
        raise InputError(f"options on top of {path.name}: {describe(error)}") from error


def experiment_names() -> list[str]:
    """The experiment files that come with the suite."""
    return names_in(EXPERIMENTS)
