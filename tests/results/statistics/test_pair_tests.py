"""Tests of pairs against scipy and by hand."""

import numpy as np
import pytest
from scipy import stats

from results.statistics.pair_tests import (
    PairDifferences,
    pairs_of,
    pool_or_own,
    variance_inflation,
    with_assumed_search,
)

EXAMPLE = PairDifferences(np.array([1.2]), np.array([0.4]), np.array([8.0]))


def test_the_answers_of_a_pair_are_those_of_the_design():
    assert EXAMPLE.shares(0.5)[0] == pytest.approx([0.940884, 0.057717, 0.001400], abs=1e-6)
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


@pytest.mark.parametrize(("searches", "factor"), [(2, 1.304), (3, 1.084), (4, 1.038), (5, 1.022)])
def test_the_variance_of_few_searches_is_inflated(searches, factor):
    assert np.sqrt(variance_inflation(searches)) == pytest.approx(factor, abs=5e-4)


def test_each_method_takes_its_own_variance_or_the_pooled_one():
    errors = pool_or_own(np.zeros(3), np.array([25.0, 0.01, 0.04]), 3)
    assert errors.squares == pytest.approx([29.375 / 3, *[9.81125 / 3] * 2])
    assert errors.degrees.tolist() == [6, 6, 6]


def test_tables_are_tested_one_by_one():
    values = np.random.default_rng(1).normal(size=(4, 5, 3))
    means, variances = values.mean(axis=-1), values.var(axis=-1, ddof=1)
    together = pool_or_own(means, variances, 3).pairs()
    for number in range(4):
        alone = pool_or_own(means[number], variances[number], 3).pairs()
        assert together.error[number] == pytest.approx(alone.error)
    assert together.p.shape == (4, len(pairs_of(5)[0]))


def test_one_search_each_is_as_uncertain_as_the_record_says():
    ones = np.ones(2)
    pairs = with_assumed_search(np.array([0.887936, 0.0]), 0 * ones + 1e-12, 5 * ones, 2 * 0.179452 * ones, 9)
    assert pairs.error[0] == pytest.approx(2 * 0.179452 * 2**0.5)
    assert pairs.degrees[0] == pytest.approx(9)
    unsearched = with_assumed_search(np.zeros(2), 0.25 * ones, 5 * ones, np.array([0.0, 0.5]), 9)
    assert unsearched.error[0] == pytest.approx((0.25 + 0.1) ** 0.5)
