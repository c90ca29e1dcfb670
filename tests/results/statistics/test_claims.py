"""Claims: Holm's method by hand, and detectable differences against simulation."""

import math
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.statistics.pair_tests import (
    SHARE_OF_BETTER,
    better_p,
    equal_p,
    holm_adjusted,
    smallest_detectable,
    welch_t,
)


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([0.02], [0.02]),
        ([math.nan, 0.02, 0.04], [math.nan, 0.04, 0.04]),
    ],
)
def test_holms_method_by_hand(p_values, expected):
    assert holm_adjusted(p_values) == pytest.approx(expected, nan_ok=True)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_the_closure_of_bonferroni(p_values):
    """A hypothesis falls at a level if every intersection that it is part of falls by Bonferroni."""
    indices = range(len(p_values))
    subsets = list(chain.from_iterable(combinations(indices, size) for size in range(1, len(p_values) + 1)))
    closed = [
        max(min(1.0, len(subset) * min(p_values[i] for i in subset)) for subset in subsets if index in subset)
        for index in indices
    ]
    assert holm_adjusted(p_values) == pytest.approx(closed)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_adjusts_upwards_and_keeps_the_order(p_values):
    adjusted = holm_adjusted(p_values)
    assert (adjusted >= np.array(p_values) - 1e-15).all()
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


def test_both_kinds_of_claims_share_the_level():
    pairs = welch_t(np.array([[0.50, 0.52, 0.51], [0.55, 0.58, 0.54]]))
    assert better_p(pairs)[0] == pytest.approx(pairs.p[0] / SHARE_OF_BETTER)
    assert equal_p(pairs, 0.2)[0] == pytest.approx(pairs.p_equal(0.2)[0] / (1 - SHARE_OF_BETTER))


def test_a_detectable_difference_is_seen_in_four_of_five_tables():
    generator, runs = np.random.default_rng(0), 12
    values = generator.standard_normal((20_000, 2, runs))
    error, degrees = np.sqrt(2 / runs), 2.0 * (runs - 1)
    smallest = float(smallest_detectable(np.array(error), np.array(degrees), 0.05, 1))
    values[:, 0] += smallest
    seen = (better_p(welch_t(values)) < 0.05).mean()
    assert seen == pytest.approx(0.8, abs=0.02)
