"""Budgets: smallest detectable differences against simulated tables."""

import numpy as np
import pytest

from results.spec.experiment_spec import PrimaryScore
from results.statistics.method_comparison import compare_methods
from results.statistics.pair_tests import better_p, moderated_t
from results.statistics.planning import (
    budget,
    measured_deviation,
    run_deviation,
    runs_for,
    smallest_difference,
)
from tests.support.sample_records import some_run


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


def test_a_budget_follows_from_the_experiments_own_runs_or_the_measured_ones():
    def runs(spread):
        return [some_run(key, run, 0.5 + spread * run) for key in "ab" for run in range(2)]

    small, large = (budget(5, 3, PrimaryScore(), runs(spread)) for spread in (0.02, 0.04))
    assert small.from_own_runs
    assert large.smallest == pytest.approx(2 * small.smallest)
    assert small.runs_needed < large.runs_needed
    assert budget(5, 1, PrimaryScore(), runs(0.02)).smallest is None
    measured = budget(5, 3, PrimaryScore(), [some_run("a", 0, 0.5)])
    assert not measured.from_own_runs
    assert measured.deviation == measured_deviation()
    on_features = budget(5, 3, PrimaryScore(), on_features=True)
    assert on_features.deviation == measured_deviation(on_features=True) < measured_deviation() / 2


def test_deviations_are_pooled_over_the_methods_that_vary():
    methods = {
        "a": dict(enumerate([0.1, 0.3])),
        "b": dict(enumerate([0.5, 0.5, 0.8])),
        "constant": dict(enumerate([0.2, 0.2])),
        "single": {0: 0.9},
    }
    expected = np.sqrt((0.02 + 2 * 0.03) / 3)
    assert run_deviation(methods.values()) == pytest.approx(expected)
    assert run_deviation([{0: 0.9}]) is None
    assert run_deviation([methods["constant"]]) is None
    assert 0.001 < measured_deviation() < 0.05
    assert compare_methods(methods).pair("a", "b").p is not None
