"""Optuna gets the search space that a method card's file defines."""

from importlib import resources

import yaml

from reproduce.config.checked_card import load_card
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import card_names
from reproduce.config.method_on_dataset import open_method

METHODS = resources.files("reproduce").joinpath("methods")
SEARCHES = {name: yaml.safe_load(METHODS.joinpath(f"{name}.yaml").read_text()).get("search") for name in card_names()}
LOGARITHMIC = {"linear": False, "log": True, "int": False, "int_log": True, "choice": None}


def test_scales_of_a_search_reach_optuna() -> None:
    (experiment,) = load_experiments("quickstart", {}).values()
    for name in (name for name, written in SEARCHES.items() if written):
        space = open_method(experiment, load_card(name)).space
        asked = {parameter.target: getattr(parameter.distribution(), "log", None) for parameter in space}
        assert asked == {target: LOGARITHMIC[written["scale"]] for target, written in SEARCHES[name].items()}, name


def test_some_card_searches_a_linear_and_some_a_log_scale() -> None:
    scales = {written["scale"] for search in SEARCHES.values() if search for written in search.values()}
    assert scales >= {"linear", "log"}
