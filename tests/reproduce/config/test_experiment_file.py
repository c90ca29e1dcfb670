"""Experiment files and the options that replace their settings."""

import json

import pytest

from reproduce.config.experiment_file import load_experiments
from reproduce.config.strict_yaml import short_name
from tests.support.command_line import one_line
from tests.support.experiment_files import load_experiment
from tests.support.panels import PANELS, table_file

CONTENT = {
    "title": "T",
    "dataset": {"name": "glyphs"},
    "methods": ["untrained"],
    "trunk": {"name": "small_conv", "weights": "random"},
}


def written(folder, **changes) -> str:
    path = folder / "mine.yaml"
    path.write_text(json.dumps({**CONTENT, **changes}))
    return str(path)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"training": {"bach_size": 3}}, "training.bach_size"),
        ({"search": {"sampler": {"startup_trials": -3}}}, "search.sampler.startup_trials"),
        ({"trunk": {**CONTENT["trunk"], "batch_norm_momentum": 0.9}}, "trunk"),
    ],
)
def test_an_error_in_a_file_gives_file_and_key(tmp_path, changes, key):
    path = written(tmp_path, **changes)
    with one_line(path, f"'{key}'"):
        load_experiment(path, {})


def test_an_experiments_fingerprint_depends_on_settings_and_methods_but_not_on_folders():
    base = load_experiment("mlrc_cub200", {})
    elsewhere = load_experiment("mlrc_cub200", {"dataset.root": "elsewhere"})
    assert elsewhere.fingerprint("n", "d") == base.fingerprint("n", "d")
    others = [
        {"methods": ["triplet"]},
        *({"seed": 1}, {"search.trials": 49}, {"reproductions": 9}, {"folds": 3}, {"images.crop": 96}),
        *({"dataset.skip_broken_images": True}, {"search.bounds": "initial"}),
    ]
    names = {load_experiment("mlrc_cub200", overrides).fingerprint("n", "d") for overrides in others}
    names |= {base.fingerprint("n", "d"), base.fingerprint("other", "d"), base.fingerprint("n", "other")}
    assert len(names) == len(others) + 3


def test_the_keys_of_a_panel_replace_the_common_keys(tmp_path):
    path = table_file(tmp_path, PANELS)
    experiments = load_experiments(path, {"seed": 3})
    assert list(experiments) == ["both/small", "both/wide"]
    small, wide = experiments.values()
    assert (
        small.conditions.training.batch_size,
        small.conditions.training.max_epochs,
        small.conditions.embedding_size,
    ) == (8, 2, 16)
    assert (wide.conditions.training.batch_size, wide.conditions.embedding_size, wide.protocol) == (16, 32, "standard")
    assert small.seed == wide.seed == 3
    assert load_experiments(f"{path}/wide", {}).keys() == {"both/wide"}
    assert load_experiment(f"{path}/wide", {"seed": 3}) == wide
    assert short_name(f"{path}/wide") == "both/wide"


@pytest.mark.parametrize(
    ("panels", "name", "said"),
    [
        (PANELS, "/narrow", "there is no panel 'narrow'; the panels are small, wide"),
        (None, "/small", "has no panels"),
        ({}, "", "panels must be a mapping from each panel's name to its keys and values"),
        ({"small": 3}, "", "panels must be a mapping from each panel's name to its keys and values"),
        ({"small": {"trainin": {}}}, "", "panels.small: unknown key 'trainin'"),
    ],
)
def test_an_error_in_a_panel_gives_one_line(tmp_path, panels, name, said):
    path = table_file(tmp_path, panels)
    with one_line(said):
        load_experiments(path + name, {})
