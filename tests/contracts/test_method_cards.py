"""Every card of the suite: Optuna gets the search space of its file, and its loss can be built and stepped in it."""

import warnings
from importlib import resources

import pytest
import torch
import yaml

from protocols.training.batches import batches
from protocols.training.build_method import build_method
from reproduce.config.checked_card import load_card, open_card
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


TRAINED = [name for name in card_names() if load_card(name).loss is not None]


@pytest.mark.parametrize("name", TRAINED)
def test_a_card_steps_at_both_ends_and_in_the_middle_of_its_range(name: str) -> None:
    opened = open_card(load_card(name))
    for place in (0.02, 0.5, 0.98):
        spec = opened.at({parameter.target: parameter.at(place) for parameter in opened.space})
        torch.manual_seed(0)
        with warnings.catch_warnings():
            # Some losses warn about these small sizes.
            warnings.simplefilter("ignore")
            method = build_method(spec, num_classes=60, embedding_size=16, training_images=240, batch_size=32)
        labels = torch.arange(60).repeat_interleave(4)
        rows = next(batches(labels.numpy(), 32, spec.samples_per_class, 0, whole_passes=spec.whole_passes))
        embeddings = torch.randn(len(rows), 16, requires_grad=True)
        # Twice, since a loss can keep something of the step before.
        for _ in range(2):
            loss = method(embeddings, labels[rows])
            loss.backward()
        assert loss.isfinite(), place
        assert embeddings.grad is not None
        assert embeddings.grad.isfinite().all(), place
        assert embeddings.grad.any(), f"{place}: nothing is learned"
