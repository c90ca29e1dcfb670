"""Ranges of hyperparameters, as Optuna gets them."""

from contextlib import suppress

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import ValidationError

from protocols.search.proposals import distribution_of
from reproduce.run.session import default_setting
from results.spec.component import Component, WeightedComponent
from results.spec.method import Batch, HyperparameterError, LossOptimizer, Method, NetworkOptimizer
from results.spec.plan import PlannedRow
from results.spec.range import Range, identity_of_space, space_of, within_budget
from tests.support.sample_records import some_plan


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("linear", FloatDistribution(2.0, 50.0)),
        ("log", FloatDistribution(2.0, 50.0, log=True)),
        ("int", IntDistribution(2, 50)),
        ("int_log", IntDistribution(2, 50, log=True)),
    ],
)
def test_optuna_gets_the_range_on_its_scale(scale, expected):
    assert distribution_of(Range(scale=scale, low=2, high=50)) == expected


def test_optuna_gets_choices_in_their_order():
    parameter = Range(scale="choice", choices=("soft", "hard", None))
    assert distribution_of(parameter) == CategoricalDistribution(("soft", "hard", None))
    assert [parameter.at(position) for position in (0, 0.4, 0.99)] == parameter.grid(9) == ["soft", "hard", None]
    assert [parameter.holds(value) for value in ("hard", None, "easy", 1)] == [True, True, False, False]


@pytest.mark.parametrize("choices", [(1, True), ("a", "b", "a"), ([1], [1.0])])
def test_equal_choices_are_refused(choices):
    with pytest.raises(ValidationError, match=r"the choice .* equals one before it; name each once"):
        Range(scale="choice", choices=choices)


def test_a_range_holds_its_ends_and_a_grid_has_them():
    bins = Range(scale="int", low=1, high=5)
    assert [bins.holds(value) for value in (1, 5, 0, 6, 2.0, True)] == [True, True, False, False, False, False]
    rate = bins.model_copy(update={"scale": "linear"})
    assert [rate.holds(value) for value in (1, 1.5, 5.5, "2", True)] == [True, True, False, False, False]
    assert [bins.grid(points) for points in (1, 2, 3, 9)] == [[1], [1, 5], [1, 3, 5], [1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("scale", "low", "high", "step", "values"),
    [
        ("linear", 0.2, 0.8, 0.2, [0.2, 0.4, 0.6, 0.8]),
        ("linear", -0.1, 0.1, 0.1, [-0.1, 0.0, 0.1]),
        ("int", 1, 7, 3, [1, 4, 7]),
    ],
)
def test_a_step_allows_no_values_between(scale, low, high, step, values):
    parameter = Range(scale=scale, low=low, high=high, step=step)
    assert parameter.grid(2) == [parameter.at((n + 0.5) / len(values)) for n in range(len(values))] == values
    assert [parameter.holds(value) for value in (*values, low + step / 2, True)] == [True] * len(values) + [False] * 2
    study = optuna.create_study(sampler=optuna.samplers.BruteForceSampler())
    for _ in values:
        with suppress(RuntimeError):  # It stops the study at the last value.
            study.tell(study.ask({"loss.x": distribution_of(parameter)}), 0.5)
    assert sorted(trial.params["loss.x"] for trial in study.trials) == values


def test_ranges_are_recorded_and_choices_are_not():
    margin = Range(scale="linear", low=0.0, high=1.0, step=0.25)
    kind = Range(scale="choice", choices=("soft", "hard"))
    row = {"key": "a", "title": "A", "ranges": {"loss.kind": kind, "loss.margin": margin}}
    plan = some_plan(methods={"a": "A"})
    stored = plan.model_copy(update={"rows": {"a": PlannedRow.model_validate(row)}}).model_dump(mode="json")
    assert stored["ranges"] == {"a": {"loss.margin": {"scale": "linear", "low": 0.0, "high": 1.0}}}


def test_the_ranges_of_a_stored_study_are_read_as_they_were_written():
    space = {
        "loss.kind": Range(scale="choice", choices=("soft", "hard")),
        "loss.margin": Range(scale="linear", low=0.0, high=1.0, step=0.25),
        "loss.bins": Range(scale="int", low=1, high=4, exhaustive=True),
    }
    stored = identity_of_space(space)
    assert [list(one) for one in stored] == [
        ["target", "scale", "low", "high", "choices", "exhaustive"],
        ["target", "scale", "low", "high", "step", "choices", "exhaustive"],
        ["target", "scale", "low", "high", "choices", "exhaustive"],
    ]
    assert space_of(stored) == space


PARAMETERS = st.one_of(
    st.tuples(st.sampled_from(["linear"]), st.floats(-100, 100), st.floats(0.001, 100)),
    st.tuples(st.sampled_from(["log"]), st.floats(1e-6, 10), st.floats(0.001, 100)),
    st.tuples(st.sampled_from(["int", "int_log"]), st.integers(1, 50), st.integers(1, 50)),
)


@given(PARAMETERS, st.floats(0, 1, exclude_max=True))
def test_every_position_is_inside_the_range_as_optuna_sees_it(spec, position):
    scale, low, width = spec
    parameter = Range(scale=scale, low=low, high=low + width)
    value = parameter.at(position)
    distribution = distribution_of(parameter)
    assert distribution._contains(distribution.to_internal_repr(value))
    assert isinstance(value, int) == scale.startswith("int")


@pytest.mark.parametrize(
    ("scale", "low", "high", "middle"),
    [("linear", -0.2, 2.0, 0.9), ("log", 1e-6, 1.0, 1e-3), ("int", 1, 3, 2), ("int_log", 1, 31, 4)],
)
def test_the_middle_of_a_range_is_on_its_scale(scale, low, high, middle):
    parameter = Range(scale=scale, low=low, high=high)
    assert parameter.at(0.5) == pytest.approx(middle)
    assert parameter.at(0.0) == pytest.approx(low)
    assert parameter.at(1 - 1e-12) == pytest.approx(high)


def test_whole_numbers_have_equal_shares():
    parameter = Range(scale="int", low=2, high=5)
    values = [parameter.at((i + 0.5) / 4000) for i in range(4000)]
    assert [values.count(value) for value in (2, 3, 4, 5)] == [1000] * 4


@pytest.mark.parametrize(
    ("scale", "low", "high", "step", "said"),
    [
        ("log", 0, 1, None, "a log scale needs low > 0"),
        ("int_log", 0, 8, None, "a log scale needs low > 0"),
        ("int", 1.5, 8, None, "needs whole numbers"),
        ("int", 1, 8.5, None, "needs whole numbers"),
        ("int", 1, 8, 0.5, "needs whole numbers"),
        ("log", 1, 8, 1, "a log scale has no step"),
        ("linear", 0, 1, 0.3, "whole steps of 0.3"),
        ("linear", 0, 1, 1e-6, "high must be low and 1 to 999 whole steps of 1e-06"),
        ("choice", 1, 8, None, "needs either choices or a scale"),
    ],
)
def test_a_range_that_its_scale_cannot_have_is_refused(scale, low, high, step, said):
    choices = ("soft", "hard") if scale == "choice" else None
    with pytest.raises(ValidationError, match=said):
        Range(scale=scale, low=low, high=high, step=step, choices=choices)


BINS = Range(scale="int", low=2, high=8, exhaustive=True)


def test_one_parameter_alone_that_asks_for_it_is_tried_at_all_values_if_the_budget_is_enough():
    bins, tried = {"bins": BINS}, {"bins": Range(scale="int", low=2, high=8)}
    assert within_budget(bins, 7) == within_budget(bins, 50) == (bins, 7)
    margin = {"margin": Range(scale="linear", low=0, high=1)}
    assert [within_budget(bins, trials) for trials in (1, 6)] == [(tried, trials) for trials in (1, 6)]
    assert within_budget(tried, 50) == (tried, 50)
    assert within_budget(bins | margin, 50) == (tried | margin, 50)
    assert within_budget({}, 50) == ({}, 0)


METHOD = Method(
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
    loss_optimizer=LossOptimizer(lr=0.01),
)


def _look(method, *path):
    value = method.model_dump(mode="json")
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
def test_a_value_goes_to_its_place_and_nowhere_else(target, path):
    before = METHOD.model_dump_json()
    placed = METHOD.at({target: 0.125})
    assert _look(placed, *path) == 0.125
    assert METHOD.model_dump_json() == before, "the defaults were changed"
    whole = placed.model_dump(mode="json")
    *outer, last = path
    inside = whole
    for key in outer:
        inside = inside[key]
    try:
        inside[last] = _look(METHOD, *path)
    except KeyError:
        del inside[last]
    if target == "loss.bare.pos_margin":
        del whole["loss"]["arguments"]["bare"]["component"]["arguments"]
    assert whole == METHOD.model_dump(mode="json")


def test_the_default_setting_has_what_is_set_and_in_its_range():
    searched = ["optimizer.lr", "loss_optimizer.lr", "loss.weight", "loss.base_loss.alpha", "loss.new"]
    space = {target: Range(scale="linear", low=1e-6, high=1) for target in searched}
    of_network = {"optimizer.lr": 1e-5, "loss_optimizer.lr": 0.01, "loss.weight": 1.0}
    assert default_setting(METHOD, space, 1e-5) == of_network
    own = METHOD.at({"optimizer.lr": 1e-3, "loss_optimizer.lr": None})
    rates = {target: space[target] for target in searched[:2]}
    assert default_setting(own, rates, 1e-5) == {"optimizer.lr": 1e-3, "loss_optimizer.lr": 1e-3}


def test_rates_of_the_network_and_images_per_class_can_be_searched_and_nothing_changes_nothing():
    assert METHOD.at({"optimizer.lr": 1e-3, "batch.samples_per_class": 2}) == METHOD.model_copy(
        update={"optimizer": NetworkOptimizer(lr=1e-3), "batch": Batch(samples_per_class=2)}
    )
    assert METHOD.at({}) == METHOD


def test_several_values_at_once():
    placed = METHOD.at({"loss.weight": 3.0, "miner.epsilon": 0.4, "loss.base_loss.alpha": 7.0})
    assert _look(placed, *BASE, "alpha") == 7.0
    assert placed.miner == Component(name="MultiSimilarityMiner", arguments={"epsilon": 0.4})
    assert _look(placed, "loss", "arguments", "weight") == 3.0


NOWHERE = ("margin", "loss", "loss.", "optimizer.momentum", "loss_optimizer.momentum", "batch.size", "loss.weight.deep")
BARE = Method(name="bare", loss=None)


@pytest.mark.parametrize("target", [*NOWHERE, "loss.nothing.alpha", ""])
def test_a_target_without_a_place_is_refused(target):
    with pytest.raises(HyperparameterError, match=f"method 'wrapped' has no hyperparameter '{target}'"):
        METHOD.at({target: 1.0})
    for absent in ("miner.epsilon", "embedding_regularizer.weight", "loss.margin"):
        with pytest.raises(HyperparameterError, match="method 'bare' has no hyperparameter"):
            BARE.at({absent: 1.0})


@pytest.mark.parametrize(
    ("target", "value", "part"),
    [("loss_optimizer.lr", "fast", "loss_optimizer.lr"), ("batch.samples_per_class", 1.5, "batch.samples_per_class")],
)
def test_values_of_the_wrong_kind_are_refused(target, value, part):
    with pytest.raises(HyperparameterError, match=f"method 'wrapped': {part}: Input should be a valid"):
        METHOD.at({target: value})


def test_a_value_that_the_method_cannot_have_is_named():
    method = Method(name="bare", loss=Component(name="ContrastiveLoss"))
    with pytest.raises(HyperparameterError, match="method 'bare': loss: the component in argument 'margin' needs"):
        method.at({"loss.margin": {"component": 1}})
