"""Ranges of hyperparameters, as Optuna gets them."""

from typing import Any

import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from protocols.search.space import SearchParameter


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
