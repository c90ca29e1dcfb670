"""Tests of pairs and corrections of p values: against scipy, by hand, and by their definitions."""

import math
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.answer.pair_tests import (
    PairDifferences,
    adjusted,
    adjusted_in_one_step,
    family,
    holm,
    least_factor,
    pairs_of,
    pool_or_own,
    variance_inflation,
    with_assumed_search,
    with_best,
)

EXAMPLE = PairDifferences(np.array([1.2]), np.array([0.4]), np.array([8.0]))


def test_the_answers_of_a_pair_are_those_of_the_design():
    assert EXAMPLE.p_beyond(0.5)[0] == pytest.approx(0.059116, abs=1e-6)
    for claimed, p in ((2.5, 0.011701), (1.5, 0.474731)):
        of_claim = PairDifferences(EXAMPLE.difference - claimed, EXAMPLE.error, EXAMPLE.degrees)
        assert of_claim.p[0] == pytest.approx(p, abs=1e-6)
        assert (abs(1.2 - claimed) > EXAMPLE.half_width()[0]) == (p < 0.05)


def test_p_values_are_those_of_students_t():
    assert EXAMPLE.p[0] == pytest.approx(2 * stats.t.sf(3, 8))
    assert EXAMPLE.p_equal(2.0)[0] == pytest.approx(stats.t.sf(2, 8))
    assert EXAMPLE.half_width()[0] == pytest.approx(0.4 * stats.t.ppf(0.975, 8))


def test_equal_variances_of_many_searches_give_the_pooled_t_test():
    values = np.random.default_rng(0).normal(size=(3, 400))
    values = (values - values.mean(axis=1, keepdims=True)) / values.std(axis=1, ddof=1, keepdims=True)
    values[0] += 0.2
    pairs = pool_or_own(values.mean(axis=1), values.var(axis=1, ddof=1), 400).pairs()
    expected = stats.ttest_ind(values[0], values[1])
    assert pairs.difference[0] / pairs.error[0] == pytest.approx(expected.statistic, rel=1e-5)
    assert pairs.degrees[0] == 40


@pytest.mark.parametrize(("searches", "factor"), [(2, 1.414), (3, 1.118), (4, 1.054), (5, 1.031)])
def test_the_variance_of_few_searches_is_inflated(searches, factor):
    assert np.sqrt(variance_inflation(searches)) == pytest.approx(factor, abs=5e-4)


def test_each_method_takes_its_own_variance_or_the_pooled_one():
    errors = pool_or_own(np.zeros(3), np.array([0.025, 0.00001, 0.00004]), 3)
    assert errors.squares == pytest.approx([0.03125 / 3, *[0.0104375 / 3] * 2])
    assert errors.degrees.tolist() == [6, 6, 6]
    rounded = pool_or_own(np.zeros(2), np.array([0.25, 0.0]), 3, least=3.0**2 / 12)
    assert rounded.squares == pytest.approx([1.25 * 9 / 12 / 3] * 2)


def test_tables_are_tested_one_by_one():
    values = np.random.default_rng(1).normal(size=(4, 5, 3))
    means, variances = values.mean(axis=-1), values.var(axis=-1, ddof=1)
    together = pool_or_own(means, variances, 3).pairs()
    for number in range(4):
        alone = pool_or_own(means[number], variances[number], 3).pairs()
        assert together.error[number] == pytest.approx(alone.error)
        for compare, adjust in product(("all", "best", "named"), (adjusted, adjusted_in_one_step)):
            of_all, of_one = (adjust(p[..., :3] / 20, compare, 5) for p in (together.p, alone.p))
            assert of_all[number] == pytest.approx(of_one)
        assert holm(together.p)[number] == pytest.approx(holm(alone.p))
    assert together.p.shape == (4, len(pairs_of(5)[0]))


def test_one_search_each_is_as_uncertain_as_the_record_says():
    ones = np.ones(2)
    pairs = with_assumed_search(np.array([0.887936, 0.0]), 0 * ones + 1e-12, 5 * ones, 2 * 0.179452 * ones, 9)
    assert pairs.error[0] == pytest.approx(2 * 0.179452 * 2**0.5)
    assert pairs.degrees[0] == pytest.approx(9)
    unsearched = with_assumed_search(np.zeros(2), 0.25 * ones, 5 * ones, np.array([0.0, 0.5]), 9)
    assert unsearched.error[0] == pytest.approx((0.25 + 0.1) ** 0.5)
    pairs = with_assumed_search(np.zeros(2), np.array([0.2, 0.3]), np.array([2.0, 4.0]), np.array([0.0, 0.5]), 9)
    spread = 0.25**2 / 9 + 0.1**2 / 1 + 0.075**2 / 3
    assert pairs.degrees[0] == pytest.approx((0.25 + 0.1 + 0.075) ** 2 / spread)


def test_two_single_runs_that_stand_for_all_are_told_apart_by_more_than_rounding():
    step = 1e-4
    rounded = np.full(2, step**2 / 12)
    pairs = with_assumed_search(np.array([0.25, 0.23]), rounded, np.ones(2), np.zeros(2), 9)
    assert pairs.error[0] == pytest.approx(step / 6**0.5)
    assert pairs.half_width()[0] < 3 * step
    assert pairs.p[0] < 1e-6


@pytest.mark.parametrize(("p_values", "expected"), [([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.6, 0.7], [1, 1])])
def test_holms_method_by_hand(p_values, expected):
    assert holm(p_values) == pytest.approx(expected)


def test_no_factor_is_below_the_least():
    p_values = [0.001, 0.004, 0.02, 0.03, 0.04, 0.2]
    assert holm(p_values, least=3) == pytest.approx([0.006, 0.020, 0.080, 0.090, 0.120, 0.600])
    assert holm(p_values) == pytest.approx([0.006, 0.020, 0.080, 0.090, 0.090, 0.200])
    assert [least_factor(k) for k in (2, 3, 4, 5, 10, 15, 21, 31)] == [1, 2, 3, 5, 23, 53, 105, 233]


def test_tests_that_are_still_missing_count():
    assert holm([0.01, 0.02], tests=4) == pytest.approx([0.04, 0.06])
    assert adjusted(np.array([0.01]), "named", 4) == pytest.approx([0.03])
    assert with_best(np.array([0.01]), 4)[0] == pytest.approx(0.03)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_the_closure_of_bonferroni(p_values):
    """A hypothesis falls at a level if every intersection that it is part of falls by Bonferroni."""
    indices = range(len(p_values))
    subsets = list(chain.from_iterable(combinations(indices, size) for size in range(1, len(p_values) + 1)))
    closed = [
        max(min(1.0, len(subset) * min(p_values[i] for i in subset)) for subset in subsets if index in subset)
        for index in indices
    ]
    assert holm(p_values) == pytest.approx(closed)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_chosen_best_pays_for_its_range_or_for_the_sweep(p_values):
    found, methods = with_best(np.array(p_values), len(p_values) + 1), len(p_values) + 1
    assert (found >= np.array(p_values) - 1e-15).all()
    assert found.max() <= min(1.0, (methods - 1) * max(p_values)) + 1e-12
    # The lowest method pays for all pairs, as every pair could have been this one.
    assert found[-1] == pytest.approx(min(1.0, family("best", methods) * p_values[-1], (methods - 1) * max(p_values)))


@pytest.mark.parametrize(("compare", "factor"), [("all", 6), ("best", 6), ("m0", 3)])
def test_one_step_takes_the_whole_family(compare, factor):
    assert adjusted_in_one_step(np.array([0.01, 0.3]), compare, 4) == pytest.approx(
        [factor * 0.01, min(1, factor * 0.3)]
    )
    assert math.isclose(family(compare, 4), factor)
