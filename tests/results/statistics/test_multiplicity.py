"""Corrections: Holm's method by hand, with a least factor, and the range and sweep of a chosen best."""

import math
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.statistics.multiplicity import adjusted, adjusted_in_one_step, family, holm, least_factor, with_best


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
