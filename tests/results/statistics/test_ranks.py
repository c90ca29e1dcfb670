"""Average ranks: against the tables and formulas of Demšar (2006), and hand-made worlds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.statistics.ranks import critical_difference, nemenyi_difference


def methods_of(table):
    """By method, its values by block."""
    return {f"m{column}": dict(enumerate(values)) for column, values in enumerate(np.transpose(table).tolist())}


@pytest.mark.parametrize(
    ("alpha", "quantiles"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_the_quantiles_are_those_of_demsars_table_5(alpha, quantiles):
    for methods, quantile in enumerate(quantiles, 2):
        gap = nemenyi_difference(methods, 6, alpha)  # six blocks leave q sqrt(k (k + 1)) / 6
        # The printed table was made from a rounded one: 2.343 is 2.3437.
        assert gap * 6 / math.sqrt(methods * (methods + 1)) == pytest.approx(quantile, abs=1e-3)


def test_demsars_example_of_a_critical_difference():
    """Section 3.2.2: four methods on 14 data sets, 2.569 sqrt(4 x 5 / (6 x 14)) = 1.25."""
    assert nemenyi_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert nemenyi_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=0.005)


def test_ranks_by_hand():
    found = critical_difference(methods_of([[0.1, 0.3, 0.2], [0.1, 0.2, 0.2], [0.5, 0.9, 0.7]]))
    assert found.methods == ("m1", "m2", "m0")
    assert found.ranks == pytest.approx((3.5 / 3, 5.5 / 3, 3.0))
    assert (found.blocks, found.left_out) == (3, 0)


tables = st.integers(3, 6).flatmap(
    lambda width: st.lists(st.permutations([i / 10 for i in range(width)]), min_size=2, max_size=9)
)


@given(tables)
def test_friedmans_statistic_is_demsars_formula(table):
    """Without ties: 12 N / (k (k + 1)) (sum of R^2 - k (k + 1)^2 / 4), chi-squared with k - 1 degrees of freedom."""
    found = critical_difference(methods_of(table))
    n, k = len(table), len(table[0])
    squares = sum(rank**2 for rank in found.ranks)
    expected = 12 * n / (k * (k + 1)) * (squares - k * (k + 1) ** 2 / 4)
    assert found.statistic == pytest.approx(expected, abs=1e-9)
    assert found.p == pytest.approx(stats.chi2.sf(expected, k - 1), abs=1e-9)
    assert sum(found.ranks) == pytest.approx(k * (k + 1) / 2)
    assert list(found.ranks) == sorted(found.ranks)


@given(tables)
def test_cliques_are_all_the_largest_groups_within_the_gap(table):
    found = critical_difference(methods_of(table))
    rank = dict(zip(found.methods, found.ranks, strict=True))
    cliques = [set(clique) for clique in found.cliques]
    for clique in cliques:
        assert max(rank[one] for one in clique) - min(rank[one] for one in clique) < found.difference
        assert not any(clique < other for other in cliques)
    for one in rank:
        for two in rank:
            together = any({one, two} <= clique for clique in cliques)
            assert together == (one != two and abs(rank[one] - rank[two]) < found.difference) or one == two


def test_cliques_overlap_where_they_should():
    blocks = [[5.0, 4.0, 3.0, 2.0, 1.0]] * 6 + [[4.0, 5.0, 2.0, 3.0, 1.0]] * 6
    found = critical_difference(methods_of(blocks))
    assert found.ranks == (1.5, 1.5, 3.5, 3.5, 5.0)
    assert found.difference == pytest.approx(2.728 * math.sqrt(30 / 72), abs=1e-3)  # 1.76
    assert found.cliques == (("m0", "m1"), ("m2", "m3", "m4"))
    fewer = critical_difference(methods_of(blocks[4:8]))
    assert fewer.difference == pytest.approx(2.728 * math.sqrt(30 / 24), abs=1e-3)  # 3.05
    assert fewer.cliques == (("m0", "m1", "m2", "m3"), ("m2", "m3", "m4"))


def test_blocks_in_which_a_method_is_missing_are_left_out():
    methods = methods_of([[0.1, 0.3, 0.2], [0.1, 0.2, 0.3], [0.5, 0.9, 0.7]])
    del methods["m1"][0]
    methods["m2"]["alone"] = 0.4
    found = critical_difference(methods)
    assert (found.blocks, found.left_out) == (2, 2)
    assert found.ranks == pytest.approx((1.5, 1.5, 3.0))


def test_methods_that_never_differ_rank_alike():
    found = critical_difference(methods_of([[0.2] * 3] * 4))
    assert (found.ranks, found.statistic, found.p) == ((2.0, 2.0, 2.0), 0.0, 1.0)
    assert found.cliques == (("m0", "m1", "m2"),)


def test_two_methods_have_ranks_but_no_friedman_test():
    found = critical_difference(methods_of([[0.2, 0.1]] * 8))
    assert (found.statistic, found.p, found.cliques) == (None, None, ())
    assert found.difference == pytest.approx(1.96 * math.sqrt(6 / 48), abs=1e-4)


def test_too_little_is_said():
    with pytest.raises(ValueError, match="at least two methods"):
        critical_difference(methods_of([[0.1], [0.2]]))
    with pytest.raises(ValueError, match="at least two runs that all of m0, m1 have in common"):
        critical_difference(methods_of([[0.1, 0.2]]))


def test_the_test_is_wrong_in_about_5_of_100_worlds_without_differences():
    rng = np.random.default_rng(8)
    apart = 0
    for _ in range(600):
        found = critical_difference(methods_of(rng.normal(size=(12, 4))))
        apart += found.ranks[-1] - found.ranks[0] >= found.difference
    assert apart / 600 == pytest.approx(0.045, abs=0.03)
