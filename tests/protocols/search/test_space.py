"""Ranges of hyperparameters, as Optuna gets them."""

from contextlib import suppress
from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import ValidationError

from protocols.search.space import SearchParameter, searched_ranges, within_budget
from results.spec.search_settings import SearchedRange


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("linear", FloatDistribution(2.0, 50.0)),
        ("log", FloatDistribution(2.0, 50.0, log=True)),
        ("int", IntDistribution(2, 50)),
        ("int_log", IntDistribution(2, 50, log=True)),
    ],
)
def test_optuna_gets_the_range_on_its_scale(scale: Any, expected: BaseDistribution) -> None:
    assert SearchParameter(target="loss.x", scale=scale, low=2, high=50).distribution() == expected


def test_optuna_gets_choices_in_their_order() -> None:
    parameter = SearchParameter(target="loss.x", scale="choice", choices=("soft", "hard", None))
    assert parameter.distribution() == CategoricalDistribution(("soft", "hard", None))
    assert [parameter.at(position) for position in (0, 0.4, 0.99)] == parameter.grid(9) == ["soft", "hard", None]
    assert [parameter.holds(value) for value in ("hard", None, "easy", 1)] == [True, True, False, False]


@pytest.mark.parametrize("choices", [(1, True), ("a", "b", "a"), ([1], [1.0])])
def test_equal_choices_are_refused(choices: Any) -> None:
    with pytest.raises(ValidationError, match=r"loss\.x: the choice .* equals one before it; name each once"):
        SearchParameter(target="loss.x", scale="choice", choices=choices)


def test_a_range_holds_its_ends_and_a_grid_has_them() -> None:
    bins = SearchParameter(target="loss.x", scale="int", low=1, high=5)
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
def test_a_step_allows_no_values_between(scale: Any, low: float, high: float, step: float, values: list[Any]) -> None:
    parameter = SearchParameter(target="loss.x", scale=scale, low=low, high=high, step=step)
    assert parameter.grid(2) == [parameter.at((n + 0.5) / len(values)) for n in range(len(values))] == values
    assert [parameter.holds(value) for value in (*values, low + step / 2, True)] == [True] * len(values) + [False] * 2
    study = optuna.create_study(sampler=optuna.samplers.BruteForceSampler())
    for _ in values:
        with suppress(RuntimeError):  # It stops the study at the last value.
            study.tell(study.ask({"loss.x": parameter.distribution()}), 0.5)
    assert sorted(trial.params["loss.x"] for trial in study.trials) == values


def test_ranges_are_recorded_and_choices_are_not() -> None:
    margin = SearchParameter(target="loss.margin", scale="log", low=0.1, high=1.0)
    kind = SearchParameter(target="loss.kind", scale="choice", choices=("soft", "hard"))
    assert searched_ranges([kind, margin]) == {"loss.margin": SearchedRange(scale="log", low=0.1, high=1.0)}


PARAMETERS = st.one_of(
    st.tuples(st.sampled_from(["linear"]), st.floats(-100, 100), st.floats(0.001, 100)),
    st.tuples(st.sampled_from(["log"]), st.floats(1e-6, 10), st.floats(0.001, 100)),
    st.tuples(st.sampled_from(["int", "int_log"]), st.integers(1, 50), st.integers(1, 50)),
)


@given(PARAMETERS, st.floats(0, 1, exclude_max=True))
def test_every_position_is_inside_the_range_as_optuna_sees_it(spec: tuple[Any, Any, Any], position: float) -> None:
    scale, low, width = spec
    parameter = SearchParameter(target="loss.x", scale=scale, low=low, high=low + width)
    value = parameter.at(position)
    distribution = parameter.distribution()
    assert distribution._contains(distribution.to_internal_repr(value))
    assert isinstance(value, int) == scale.startswith("int")


@pytest.mark.parametrize(
    ("scale", "low", "high", "middle"),
    [("linear", -0.2, 2.0, 0.9), ("log", 1e-6, 1.0, 1e-3), ("int", 1, 3, 2), ("int_log", 1, 31, 4)],
)
def test_the_middle_of_a_range_is_on_its_scale(scale: Any, low: float, high: float, middle: float) -> None:
    parameter = SearchParameter(target="loss.x", scale=scale, low=low, high=high)
    assert parameter.at(0.5) == pytest.approx(middle)
    assert parameter.at(0.0) == pytest.approx(low)
    assert parameter.at(1 - 1e-12) == pytest.approx(high)


def test_whole_numbers_have_equal_shares() -> None:
    parameter = SearchParameter(target="loss.x", scale="int", low=2, high=5)
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
def test_a_range_that_its_scale_cannot_have_is_refused(
    scale: Any, low: float, high: float, step: float | None, said: str
) -> None:
    choices = ("soft", "hard") if scale == "choice" else None
    with pytest.raises(ValidationError, match=said):
        SearchParameter(target="loss.x", scale=scale, low=low, high=high, step=step, choices=choices)


BINS = SearchParameter(target="loss.num_bins", scale="int", low=2, high=8, exhaustive=True)


@pytest.mark.parametrize("trials", [7, 50])
def test_a_budget_for_all_values_tries_each_once(trials: int) -> None:
    assert within_budget((BINS,), trials) == ((BINS,), 7)


def test_only_one_parameter_alone_that_asks_for_it_is_tried_at_all_values() -> None:
    searched = SearchParameter(target="loss.num_bins", scale="int", low=2, high=8)
    margin = SearchParameter(target="loss.margin", scale="linear", low=0, high=1)
    assert within_budget((searched,), 50) == ((searched,), 50)
    assert within_budget((BINS, margin), 50) == ((searched, margin), 50)
    assert within_budget((margin, BINS), 50) == ((margin, searched), 50)


@pytest.mark.parametrize("trials", [1, 6])
def test_a_budget_too_small_for_all_values_is_searched(trials: int) -> None:
    (parameter,), count = within_budget((BINS,), trials)
    assert count == trials
    assert not parameter.exhaustive
