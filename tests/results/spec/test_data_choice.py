"""The dataset of an experiment, and its split."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from results.spec.data_choice import DataChoice, DrawnSplit
from results.spec.experiment_spec import Experiment
from results.spec.trunk_spec import TrunkSpec


def experiment(**changes: object) -> Experiment:
    settings = {
        "title": "T",
        "dataset": DataChoice(name="folder"),
        "methods": ("triplet",),
        "trunk": TrunkSpec(name="small_conv", weights="random"),
    }
    return Experiment.model_validate({**settings, **changes})


def test_a_published_dataset_has_its_publishers_classes() -> None:
    with pytest.raises(ValidationError, match="dataset cub200 has its publisher's classes"):
        DataChoice(name="cub200", split=Path("split.csv"))


def test_the_seed_of_a_drawn_split_is_part_of_the_experiments_fingerprint() -> None:
    plain, drawn, other = (
        experiment(split=split).fingerprint("E", "data") for split in (None, {"seed": 3}, {"seed": 4})
    )
    assert len({plain, drawn, other}) == 3
    assert experiment(split={"seed": 3}).split == DrawnSplit(seed=3)
    assert Experiment.model_validate(experiment(split={"seed": 3}).model_dump(mode="json")).split == DrawnSplit(seed=3)


def test_the_path_of_a_split_is_no_part_of_the_fingerprint_since_its_content_is_part_of_the_datas() -> None:
    chosen = experiment(dataset=DataChoice(name="folder", split=Path("a.csv"), root=Path("images")))
    assert chosen.fingerprint("E", "data") == experiment().fingerprint("E", "data")
