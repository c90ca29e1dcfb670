"""Where a hyperparameter goes in a method."""

from typing import Any

import pytest

from protocols.search.method_template import MethodTemplate
from protocols.search.space import SearchParameter
from results.spec.hyperparameters import HyperparameterError
from results.spec.training_spec import Component, MethodSpec, WeightedComponent

METHOD = MethodSpec(
    name="wrapped",
    loss=Component(
        name="XBMLoss",
        arguments={
            "weight": 1.0,
            "base_loss": {
                "component": {
                    "name": "MultiSimilarityLoss",
                    "arguments": {"alpha": 2.0, "inner": {"component": {"name": "X", "arguments": {"deep": 1}}}},
                }
            },
            "bare": {"component": {"name": "ContrastiveLoss"}},
        },
    ),
    miner=Component(name="MultiSimilarityMiner", arguments={"epsilon": 0.1}),
    embedding_regularizer=WeightedComponent(name="LpRegularizer", arguments={"p": 2}, weight=0.5),
    loss_lr=0.01,
)
OPEN = MethodTemplate(method=METHOD)


def _look(method: MethodSpec, *path: str) -> Any:
    value: Any = method.model_dump(mode="json")
    for key in path:
        value = value[key]
    return value


BASE = ("loss", "arguments", "base_loss", "component", "arguments")


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("loss.weight", ("loss", "arguments", "weight")),
        ("loss.new", ("loss", "arguments", "new")),
        ("loss.base_loss.alpha", (*BASE, "alpha")),
        ("loss.base_loss.new", (*BASE, "new")),
        ("loss.base_loss.inner.deep", (*BASE, "inner", "component", "arguments", "deep")),
        ("loss.bare.pos_margin", ("loss", "arguments", "bare", "component", "arguments", "pos_margin")),
        ("miner.epsilon", ("miner", "arguments", "epsilon")),
        ("embedding_regularizer.weight", ("embedding_regularizer", "weight")),
        ("embedding_regularizer.p", ("embedding_regularizer", "arguments", "p")),
        ("loss_optimizer.lr", ("loss_lr",)),
        ("loss_optimizer.weight_decay", ("loss_weight_decay",)),
    ],
)
def test_a_value_goes_to_its_place_and_nowhere_else(target: str, path: tuple[str, ...]) -> None:
    before = METHOD.model_dump_json()
    placed = OPEN.at({target: 0.125})
    assert _look(placed, *path) == 0.125
    assert METHOD.model_dump_json() == before, "the defaults were changed"
    whole = placed.model_dump(mode="json")
    *outer, last = path
    inside: Any = whole
    for key in outer:
        inside = inside[key]
    try:
        inside[last] = _look(METHOD, *path)
    except KeyError:
        del inside[last]
    if target == "loss.bare.pos_margin":
        del whole["loss"]["arguments"]["bare"]["component"]["arguments"]
    assert whole == METHOD.model_dump(mode="json")


def test_the_networks_learning_rate_can_be_searched() -> None:
    assert OPEN.at({"optimizer.lr": 1e-3}).lr == 1e-3


def test_images_per_class_can_be_searched() -> None:
    assert OPEN.at({"batch.samples_per_class": 2}).samples_per_class == 2


def test_the_default_setting_has_what_is_set_and_in_its_range() -> None:
    searched = ["optimizer.lr", "loss_optimizer.lr", "loss.weight", "loss.base_loss.alpha", "loss.new"]
    space = tuple(SearchParameter(target=target, scale="linear", low=1e-6, high=1) for target in searched)
    template = MethodTemplate(method=METHOD, space=space)
    assert template.default_setting(1e-5) == {"optimizer.lr": 1e-5, "loss_optimizer.lr": 0.01, "loss.weight": 1.0}
    own = MethodTemplate(method=METHOD.model_copy(update={"lr": 1e-3, "loss_lr": None}), space=space[:2])
    assert own.default_setting(1e-5) == {"optimizer.lr": 1e-3, "loss_optimizer.lr": 1e-3}


def test_several_values_at_once() -> None:
    placed = OPEN.at({"loss.weight": 3.0, "miner.epsilon": 0.4, "loss.base_loss.alpha": 7.0})
    assert _look(placed, *BASE, "alpha") == 7.0
    assert placed.miner == Component(name="MultiSimilarityMiner", arguments={"epsilon": 0.4})
    assert _look(placed, "loss", "arguments", "weight") == 3.0


def test_without_values_the_method_stays() -> None:
    assert OPEN.at({}) == METHOD


@pytest.mark.parametrize(
    "target",
    [
        "margin",
        "loss",
        "loss.",
        "optimizer.momentum",
        "loss_optimizer.momentum",
        "batch.size",
        "loss.weight.deep",
        "loss.nothing.alpha",
        "",
    ],
)
def test_a_target_without_a_place_is_refused(target: str) -> None:
    with pytest.raises(HyperparameterError, match=f"method 'wrapped' has no hyperparameter '{target}'"):
        OPEN.at({target: 1.0})


@pytest.mark.parametrize("target", ["miner.epsilon", "embedding_regularizer.weight", "loss.margin"])
def test_a_component_that_is_not_there_has_no_arguments(target: str) -> None:
    bare = MethodTemplate(method=MethodSpec(name="bare", loss=None))
    with pytest.raises(HyperparameterError, match="method 'bare' has no hyperparameter"):
        bare.at({target: 1.0})


@pytest.mark.parametrize(
    ("target", "value", "part"),
    [("loss_optimizer.lr", "fast", "loss_lr"), ("batch.samples_per_class", 1.5, "samples_per_class")],
)
def test_values_of_the_wrong_kind_are_refused(target: str, value: Any, part: str) -> None:
    with pytest.raises(HyperparameterError, match=f"method 'wrapped': {part}: Input should be a valid"):
        OPEN.at({target: value})


def test_a_value_that_the_method_cannot_have_is_named() -> None:
    method = MethodTemplate(method=MethodSpec(name="bare", loss=Component(name="ContrastiveLoss")))
    with pytest.raises(HyperparameterError, match="method 'bare': loss: the component in argument 'margin' needs"):
        method.at({"loss.margin": {"component": 1}})
