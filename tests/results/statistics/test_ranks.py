"""Average ranks: against the formulas of Demšar (2006), and hand-made worlds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.statistics.ranks import average_ranks


def methods_of(table):
    """By method, its values by block."""
    return {f"m{column}": dict(enumerate(values)) for column, values in enumerate(np.transpose(table).tolist())}


def test_ranks_by_hand():
    found = average_ranks(methods_of([[0.1, 0.3, 0.2], [0.1, 0.2, 0.2], [0.5, 0.9, 0.7]]))
    assert found.methods == ("m1", "m2", "m0")
    assert found.ranks == pytest.approx((3.5 / 3, 5.5 / 3, 3.0))
    assert (found.blocks, found.left_out) == (3, 0)


tables = st.integers(3, 6).flatmap(
    lambda width: st.lists(st.permutations([i / 10 for i in range(width)]), min_size=2, max_size=9)
)


@given(tables)
def test_friedmans_statistic_is_demsars_formula(table):
    """Without ties: 12 N / (k (k + 1)) (sum of R^2 - k (k + 1)^2 / 4), chi-squared with k - 1 degrees of freedom."""
    found = average_ranks(methods_of(table))
    n, k = len(table), len(table[0])
    squares = sum(rank**2 for rank in found.ranks)
    expected = 12 * n / (k * (k + 1)) * (squares - k * (k + 1) ** 2 / 4)
    assert found.statistic == pytest.approx(expected, abs=1e-9)
    assert found.p == pytest.approx(stats.chi2.sf(expected, k - 1), abs=1e-9)
    assert sum(found.ranks) == pytest.approx(k * (k + 1) / 2)
    assert list(found.ranks) == sorted(found.ranks)


tied_tables = st.integers(3, 6).flatmap(
    lambda width: st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=width, max_size=width), min_size=2)
)


@given(tied_tables.filter(lambda table: any(len(set(row)) > 1 for row in table)))
def test_with_ties_the_test_is_that_of_scipy(table):
    found, expected = average_ranks(methods_of(table)), stats.friedmanchisquare(*np.transpose(table))
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-9)
    by_scipy = stats.rankdata(-np.array(table), axis=1).mean(axis=0)
    assert dict(zip(found.methods, found.ranks, strict=True)) == pytest.approx(
        {f"m{column}": rank for column, rank in enumerate(by_scipy)}
    )


def test_blocks_in_which_a_method_is_missing_are_left_out():
    methods = methods_of([[0.1, 0.3, 0.2], [0.1, 0.2, 0.3], [0.5, 0.9, 0.7]])
    del methods["m1"][0]
    methods["m2"]["alone"] = 0.4
    found = average_ranks(methods)
    assert (found.blocks, found.left_out) == (2, 2)
    assert found.ranks == pytest.approx((1.5, 1.5, 3.0))


def test_methods_that_never_differ_rank_alike():
    found = average_ranks(methods_of([[0.2] * 3] * 4))
    assert (found.ranks, found.statistic, found.p) == ((2.0, 2.0, 2.0), 0.0, 1.0)


def test_two_methods_have_ranks_but_no_friedman_test():
    found = average_ranks(methods_of([[0.2, 0.1]] * 8))
    assert (found.statistic, found.p) == (None, None)


def test_too_little_is_said():
    with pytest.raises(ValueError, match="at least two methods"):
        average_ranks(methods_of([[0.1], [0.2]]))
    with pytest.raises(ValueError, match="at least two runs that all of m0, m1 have in common"):
        average_ranks(methods_of([[0.1, 0.2]]))
