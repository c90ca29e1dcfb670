"""Tests of pairs on arrays: against scipy's own tests."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from results.statistics.moderated import limma_prior
from results.statistics.pair_tests import TESTS, moderated_t, paired_t, pairs_of, welch_t

tables = st.tuples(st.integers(2, 5), st.integers(2, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(0, 1).map(lambda x: round(x, 3)))
)


@given(tables)
def test_paired_t_is_scipys(values):
    found = paired_t(values)
    for index, (first, second) in enumerate(zip(*pairs_of(len(values)), strict=True)):
        if np.std(values[first] - values[second]) > 1e-9:
            expected = stats.ttest_rel(values[first], values[second])
            assert found.t[index] == pytest.approx(expected.statistic)
            assert found.p[index] == pytest.approx(expected.pvalue)


@pytest.mark.filterwarnings("ignore:Precision loss")  # scipy's, where one method's runs are equal
@given(tables)
def test_welch_t_is_scipys(values):
    found = welch_t(values)
    for index, (first, second) in enumerate(zip(*pairs_of(len(values)), strict=True)):
        if np.std(values[first]) + np.std(values[second]) > 1e-9:
            expected = stats.ttest_ind(values[first], values[second], equal_var=False)
            assert found.t[index] == pytest.approx(expected.statistic)
            assert found.p[index] == pytest.approx(expected.pvalue)
            assert found.degrees[index] == pytest.approx(expected.df)


@given(arrays(float, (2, 4), elements=st.floats(0, 1).map(lambda x: round(x, 3))))
@example(np.array([[0.0, 0.0, 0.0, 1.0], [0.453, 0.453, 0.453, 0.451]]))  # One method varies 500 times as much.
def test_the_moderated_test_of_two_methods_is_welchs(values):
    ours, welch = moderated_t(values), welch_t(values)
    assert ours.p == pytest.approx(welch.p)
    assert ours.degrees == pytest.approx(welch.degrees)


def test_equal_variances_with_an_endless_prior_give_the_pooled_t_test():
    values = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    expected = stats.ttest_ind(*values)
    found = moderated_t(values, limma_prior)
    assert (found.t[0], found.p[0], found.degrees[0]) == pytest.approx((expected.statistic, expected.pvalue, 4))


def test_missing_runs_are_left_out():
    values = np.array([[0.1, 0.3, 0.2, np.nan], [0.4, np.nan, 0.6, 0.5]])
    assert paired_t(values).p[0] == pytest.approx(stats.ttest_rel([0.1, 0.2], [0.4, 0.6]).pvalue)
    expected = stats.ttest_ind([0.1, 0.3, 0.2], [0.4, 0.6, 0.5], equal_var=False)
    assert welch_t(values).p[0] == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_a_single_run_of_two_methods_is_not_tested(test):
    found = test(np.array([[0.4, np.nan, np.nan], [0.1, 0.2, 0.15]]))
    assert np.isnan(found.p[0])
    assert np.isnan(found.p_equal(0.01)[0])
    assert found.difference[0] == pytest.approx(0.25)


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_without_variation_the_means_decide(test):
    found = test(np.array([[0.1] * 3, [0.3] * 3, [0.1 + 1e-17] * 3]))
    assert found.p.tolist() == [0, 1, 0]
    assert found.p_equal(0.01).tolist() == [1, 0, 1]


def test_equality_is_two_one_sided_tests():
    values = np.array([[0.50, 0.52, 0.51, 0.53], [0.51, 0.50, 0.53, 0.52]])
    a, b = values
    sides = [
        stats.ttest_ind(a, b - 0.02, equal_var=False, alternative="greater").pvalue,
        stats.ttest_ind(a, b + 0.02, equal_var=False, alternative="less").pvalue,
    ]
    assert welch_t(values).p_equal(0.02)[0] == pytest.approx(max(sides))
