"""Budgets: smallest detectable differences against simulated tables."""

import numpy as np
import pytest

from results.statistics.claims import better_p
from results.statistics.method_comparison import compare_methods
from results.statistics.pair_tests import moderated_t
from results.statistics.planning import (
    budget,
    measured_deviation,
    run_deviation,
    runs_for,
    smallest_difference,
)


@pytest.mark.parametrize(("methods", "runs"), [(2, 5), (5, 3)])
def test_the_smallest_difference_is_seen_in_four_of_five_tables(methods, runs):
    values = np.random.default_rng(5).standard_normal((4000, methods, runs))
    values[:, 0] += smallest_difference(methods, runs)
    seen = (better_p(moderated_t(values))[:, 0] < 0.05).mean()
    # Holm's later steps can only help.
    assert 0.77 < seen < 0.86


def test_more_runs_see_smaller_differences_and_more_methods_larger_ones():
    assert smallest_difference(5, 3) > smallest_difference(5, 5) > smallest_difference(5, 10)
    assert smallest_difference(2, 5) < smallest_difference(5, 5) < smallest_difference(15, 5)


def test_the_needed_runs_are_the_fewest_that_see_the_difference():
    needed = runs_for(5, 1.5)
    assert smallest_difference(5, needed) <= 1.5 < smallest_difference(5, needed - 1)
    assert runs_for(5, 0.01) is None


def test_a_budget_has_the_unit_of_its_deviation():
    small, large = budget(5, 3, 0.006), budget(5, 3, 0.012)
    assert large.smallest == pytest.approx(2 * small.smallest)
    assert small.runs_needed < large.runs_needed
    assert budget(5, 1, 0.006).smallest is None


def test_deviations_are_pooled_over_the_methods_that_vary():
    methods = {
        "a": dict(enumerate([0.1, 0.3])),
        "b": dict(enumerate([0.5, 0.5, 0.8])),
        "constant": dict(enumerate([0.2, 0.2])),
        "single": {0: 0.9},
    }
    expected = np.sqrt((0.02 + 2 * 0.03) / 3)
    assert run_deviation(methods) == pytest.approx(expected)
    assert run_deviation({"single": {0: 0.9}}) is None
    assert run_deviation({"constant": methods["constant"]}) is None
    assert 0.001 < measured_deviation() < 0.05
    assert compare_methods(methods).pair("a", "b").p is not None
