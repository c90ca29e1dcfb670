"""Conditions: gathered from an experiment file, changed for single rows, and compared; the dataset and its split."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from results.spec.conditions import Conditions
from results.spec.data_choice import DataChoice, DrawnSplit
from results.spec.experiment_spec import Experiment
from results.spec.trunk_spec import EmbedderSpec

SETTINGS: dict[str, Any] = {
    "title": "Rows",
    "dataset": {"name": "glyphs", "root": "somewhere"},
    "methods": ["contrastive", "triplet", "cosface"],
    "trunk": {"name": "small_conv", "weights": "random"},
}
FROZEN: dict[str, Any] = {"name": "efficientnet_lite0", "frozen": True}


def experiment(**rows):
    return Experiment.model_validate({**SETTINGS, "with": rows})


def test_a_file_has_the_conditions_beside_the_other_settings():
    opened = Experiment.model_validate({**SETTINGS, "embedding_size": 32, "embedder_bias": False})
    assert opened.conditions == Conditions(trunk=SETTINGS["trunk"], embedding_size=32, embedder_bias=False)
    written = opened.model_dump(mode="json")
    assert "conditions" not in written
    assert set(Conditions.model_fields) < set(written)
    assert Experiment.model_validate(written) == opened
    with pytest.raises(ValidationError, match="crops"):
        Experiment.model_validate({**SETTINGS, "images": {"crops": 3}})


def test_a_row_gets_its_conditions_and_the_others_keep_the_common_ones():
    opened = experiment(triplet={"training.batch_size": 60, "images.crop": 64, "embedding_size": 32})
    row = opened.for_row("triplet").conditions
    assert (row.training.batch_size, row.images.crop, row.embedding_size) == (60, 64, 32)
    assert row.training.optimizer == opened.conditions.training.optimizer
    assert opened.for_row("cosface") == opened.for_row("contrastive") == experiment()
    assert Experiment.model_validate(opened.model_dump(mode="json")) == opened
    assert opened.fingerprint("rows", "data") != experiment().fingerprint("rows", "data")


def test_only_rows_under_equal_conditions_are_compared():
    opened = experiment(triplet={"embedding_size": 32}, cosface={"embedding_size": 128})
    assert opened.comparable_rows() == {"contrastive", "cosface"}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("search.trials", "a row cannot have its own 'search.trials'; it can have trunk, embedding_size"),
        ("seed", "a row cannot have its own 'seed'"),
        ("trunk.name", "make a panel for another network"),
        ("trunk.frozen", "make a panel for another network"),
        ("trunk", "make a panel for another network"),
        ("proxies.warmup_steps", "'proxies' has no parts here; give 'proxies' as a whole"),
        ("training.batch_size.more", "'training.batch_size' has no parts here"),
        ("training.batch_sise", "batch_sise"),
        ("training.batch_size", "greater than or equal to 1"),
        ("embedder.init", "Input should be 'random'"),
    ],
)
def test_what_a_row_cannot_have(key, message):
    with pytest.raises(ValueError, match=message):
        experiment(triplet={key: -1}).for_row("triplet")


def test_features_have_no_trunk():
    opened = Experiment.model_validate(
        {"title": "t", "dataset": {"name": "features"}, "methods": ["contrastive"], "embedder": {"hidden": [512]}}
    )
    assert opened.conditions.trunk.name == "none"
    assert opened.conditions.trunk.is_input_features
    assert opened.conditions.embedder == EmbedderSpec(hidden=(512,))
    assert Experiment.model_validate(opened.model_dump(mode="json")) == opened


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataset": {"name": "features"}, "trunk": FROZEN}, "has no images for a trunk; remove the key trunk"),
        ({"dataset": {"name": "features"}, "images": {"crop": 64}}, "has no images; remove the settings of images"),
        ({"trunk": {"name": "none", "weights": "none"}}, "name a trunk for the images"),
        (
            {"trunk": {**FROZEN, "batch_norm": "frozen"}},
            "trunk: batch_norm has no effect where the trunk does not train",
        ),
        ({"trunk": {**FROZEN, "weights": "random"}}, "a frozen trunk needs trained weights"),
        ({"trunk": {**FROZEN, "width": 4}}, "width is set by the suite"),
        ({"trunk": FROZEN, "images": {"flip": False}}, "images: flip has no effect where"),
        ({"trunk": FROZEN, "training": {"gradient_cache": 8}}, "training: gradient_cache has no effect where"),
        (
            {"trunk": FROZEN, "training": {"optimizer": {"layer_decay": 0.5}}},
            "optimizer: layer_decay has no effect where",
        ),
        (
            {"trunk": {"name": "bn_inception", "batch_norm": "training"}, "training": {"gradient_cache": 8}},
            "would normalise each chunk by itself",
        ),
        ({"embedder": {"init": "pca", "hidden": [8]}}, "init: pca is for a linear embedder"),
        ({"embedder": {"init": "pca"}, "embedder_bias": False}, "init: pca needs the bias"),
        (
            {"proxies": {"lr_multiplier": 10}, "search": {"network_lr": {"low": 1e-6, "high": 1e-3}}},
            "no fixed rate for proxies",
        ),
    ],
)
def test_settings_without_effect_are_refused(changes, words):
    settings = {**SETTINGS, **changes}
    if settings["dataset"]["name"] == "features" and "trunk" not in changes:
        del settings["trunk"]
    with pytest.raises(ValidationError, match=words):
        Experiment.model_validate(settings)


def test_planned_looks_are_part_of_the_identity_and_the_look_that_was_reached_is_not():
    def searched(**search):
        return Experiment.model_validate({**SETTINGS, "search": search})

    plain, three, five = (
        searched(**search)
        for search in ({"searches": 3}, {"until_decided": True}, {"until_decided": True, "searches": 5})
    )
    assert {"until_decided", "default"}.isdisjoint(plain.model_dump(mode="json")["search"])
    assert three.search.searches == 3
    assert Experiment.model_validate(five.model_dump(mode="json")) == five == three.with_search(searches=5)
    names = [one.fingerprint("rows", "data") for one in (plain, three, five)]
    assert names[0] != names[1] == names[2]
    for wrong in ({"searches": 7}, {"trials": 0}):
        with pytest.raises(ValidationError, match="until_decided looks after 3, 4, 5, 6, 8 searches"):
            searched(until_decided=True, **wrong)


# The dataset and its split


def data_of(**changes):
    return Experiment.model_validate({**SETTINGS, "dataset": {"name": "folder"}, **changes})


def test_a_published_dataset_has_its_publishers_classes():
    with pytest.raises(ValidationError, match="dataset cub200 has its publisher's classes"):
        DataChoice(name="cub200", split=Path("split.csv"))


def test_the_seed_of_a_drawn_split_is_part_of_the_experiments_fingerprint():
    three = data_of(split={"seed": 3})
    assert len({one.fingerprint("E", "data") for one in (data_of(), three, data_of(split={"seed": 4}))}) == 3
    assert three.split == DrawnSplit(seed=3)
    assert Experiment.model_validate(three.model_dump(mode="json")) == three


def test_the_path_of_a_split_is_no_part_of_the_fingerprint_since_its_content_is_part_of_the_datas():
    chosen = data_of(dataset=DataChoice(name="folder", split=Path("a.csv"), root=Path("images")))
    assert chosen.fingerprint("E", "data") == data_of().fingerprint("E", "data")


def test_contrasts_are_no_part_of_an_experiments_names_and_leave_old_records_as_they_were():
    asked = data_of(contrasts=[{"title": "t", "a": ["contrastive"], "b": ["triplet"]}])
    assert asked.fingerprint("E", "data") == data_of().fingerprint("E", "data")
    assert "contrasts" not in data_of().model_dump(mode="json")
    assert Experiment.model_validate(asked.model_dump(mode="json")) == asked
    assert asked.only("contrastive").contrasts == ()
