"""Experiments: which methods are compared on what, and how (reproduce/experiments/*.yaml)."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocols.search import SamplerSettings
from protocols.splits import FOLDS
from reproduce.cards import Variant
from reproduce.reading import InputError, describe, named_file, names_in, read_model
from results.specs import ImageSettings, TrainingSettings, TrunkSpec
from results.values import fingerprint_of

EXPERIMENTS = Path(__file__).parent / "experiments"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DataChoice(_Part):
    """Which dataset. root: folder of its images, given with --data for most. subset: a part of the published one."""

    name: str
    root: Path | None = None
    subset: bool = False
    skip_broken_images: bool = False


class SearchSettings(_Part):
    """trials: settings tried per method. bounds: MLRC's search ranges as it ended or as it began."""

    trials: int = Field(default=50, ge=1)
    bounds: Literal["widened", "initial"] = "widened"
    sampler: SamplerSettings = SamplerSettings()


class Experiment(_Part):
    """An experiment file.

    methods: cards, in the order of the table's rows. variants: further rows, made of cards. seed: base of all seeds.
    folds: how many of the four are trained.
    """

    title: str
    protocol: Literal["mlrc"] = "mlrc"
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

    def fingerprint(self, name: str, data_fingerprint: str) -> str:
        """What names this experiment's rows in the store: all that could change its table but not where data lie."""
        settings = self.model_dump(
            mode="json", exclude={"title": True, "methods": True, "variants": True, "dataset": {"root"}}
        )
        return fingerprint_of([name, data_fingerprint, settings])


def load_experiment(name: str, overrides: dict[str, Any]) -> Experiment:
    """The experiment of that name or path with dotted `overrides` such as {"search.trials": 2}; raises InputError.

    `image_size` overrides the crop and scales the resizes before it, so that a crop shows the same part of an image.
    """
    path = named_file(name, [EXPERIMENTS], "experiment")
    experiment = read_model(path, Experiment)
    whole = experiment.model_dump(mode="json")
    size = overrides.get("image_size")
    if size is not None:
        images = whole["images"]
        for before in ("resize", "evaluation_resize"):
            if images.get(before) is not None:
                images[before] = round(images[before] * size / images["crop"])
        images["crop"] = size
    for key, value in overrides.items():
        if value is None or key == "image_size":
            continue
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
    """The experiments that come with the suite."""
    return names_in(EXPERIMENTS)


def short_name(name: str) -> str:
    """How an experiment is called in the store: its file's stem."""
    return Path(name).stem
