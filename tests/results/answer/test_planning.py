"""Budgets: smallest detectable differences against simulated tables and the design, and where deviations are from."""

import numpy as np
import pytest

from results.answer.deviations import SearchDeviation, run_deviation, search_deviation
from results.answer.pair_tests import SHARE_OF_BETTER, adjusted, pool_or_own
from results.answer.planning import detectable, smallest_difference, smallest_of_one_search, units_for
from results.answer.question import planned_question
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_searches import searched

GLYPHS, FROZEN = (
    MeasuredExperiment.kept(name) for name in ("all_methods_glyphs_three_searches", "mlrc_frozen_cub200_subset")
)


@pytest.mark.parametrize(("methods", "searches"), [(2, 5), (5, 3)])
def test_the_smallest_difference_is_seen_in_four_of_five_tables(methods, searches):
    values = np.random.default_rng(5).standard_normal((4000, methods, searches))
    values[:, 0] += smallest_difference(methods, searches)
    pairs = pool_or_own(values.mean(axis=-1), values.var(axis=-1, ddof=1), searches).pairs()
    seen = (adjusted(pairs.p, "all", methods)[:, 0] / SHARE_OF_BETTER < 0.05).mean()
    # Later steps can only help.
    assert 0.77 < seen < 0.86


def test_fewer_comparisons_see_smaller_differences():
    assert smallest_difference(15, 3, "mine") < smallest_difference(15, 3, "best") < smallest_difference(15, 3, "all")


def test_the_needed_searches_are_the_fewest_that_see_the_difference():
    needed = units_for(5, 1.5)
    assert smallest_difference(5, needed) <= 1.5 < smallest_difference(5, needed - 1)
    assert units_for(5, 0.01) is None


def test_one_search_sees_what_twice_the_assumed_deviation_lets_through():
    one = smallest_of_one_search(SearchDeviation(0.27, 11), 2)
    # (t(1 - .0375 / 2, 11) + t(.8, 11)) x sqrt(2) x 2 x .27
    assert one == pytest.approx((2.3609 + 0.8755) * 2**0.5 * 0.54, rel=2e-3)


def test_a_budget_follows_from_the_experiments_own_searches():
    found = answer_of(GLYPHS)
    sees = detectable(found.question, 5, found)
    own = search_deviation(found.searches).deviation
    assert (sees.source, sees.units, sees.deviation) == ("this experiment", 3, own)
    assert sees.smallest == pytest.approx(own * smallest_difference(5, 3))
    assert sees.one_more == pytest.approx(own * smallest_difference(5, 4))
    assert sees.one_more < sees.smallest


def test_a_budget_of_one_search_is_that_of_the_nearest_record():
    found = answer_of(FROZEN)
    sees = detectable(found.question, 21, found)
    assert sees.source.endswith("search_variance_birds_subset.json.xz")
    assert sees.one_more < sees.smallest
    unknown = detectable(planned_question(searched({"a": []}, searches=1, trials=3).plan.experiment), 2)
    assert (unknown.deviation, unknown.smallest, unknown.needed) == (None, None, None)


def test_a_budget_of_given_settings_is_one_of_runs():
    given = searched({"a": [[0.1, 0.2, 0.15]], "b": [[0.1, 0.1, 0.1]]}, searches=1, runs=3, trials=0)
    found = answer_of(given)
    sees = detectable(found.question, 2, found)
    assert (sees.units, sees.source) == (3, "this experiment")
    assert sees.deviation == pytest.approx(0.05)
    assert detectable(found.question, 2).deviation is None


def test_deviations_of_runs_are_pooled_over_the_settings_that_vary():
    settings = [[0.1, 0.3], [0.5, 0.5, 0.8], [0.2, 0.2], [0.9]]
    assert run_deviation(settings).deviation == pytest.approx(np.sqrt((0.02 + 2 * 0.03) / 3))
    assert run_deviation([[0.9], [0.2, 0.2]]) is None
