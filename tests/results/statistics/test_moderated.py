"""Moderated variances: against values of the real limma, and in cases that limma is not made for."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from results.statistics.moderated import STRONGEST_PRIOR, cautious_prior, limma_prior, squeezed, trigamma_inverse

LIMMA = json.loads((Path(__file__).parents[2] / "golden" / "limma" / "limma.json").read_text())
CASES = pytest.mark.parametrize("case", LIMMA["cases"], ids=[case["name"] for case in LIMMA["cases"]])


def numbers(values):
    """A list of limma as an array; null is infinite."""
    return np.array([np.inf if value is None else value for value in np.atleast_1d(values)], dtype=float)


@CASES
def test_the_prior_is_limmas(case):
    prior = limma_prior(numbers(case["variances"]), numbers(case["degrees"]))
    assert prior.variance == pytest.approx(case["prior_variance"], rel=1e-7)
    assert prior.degrees == pytest.approx(numbers(case["prior_degrees"])[0], rel=1e-6)


@CASES
def test_squeezed_variances_and_p_values_are_limmas(case):
    variances, degrees = numbers(case["variances"]), numbers(case["degrees"])
    moderated, total = squeezed(variances, degrees, limma_prior(variances, degrees))
    assert moderated == pytest.approx(numbers(case["squeezed"]), rel=1e-6)
    assert total == pytest.approx(numbers(case["total_degrees"]), rel=1e-6)
    values = np.array([[np.nan if value is None else value for value in row] for row in case["values"]], dtype=float)
    t = np.nanmean(values, axis=1) / np.sqrt(moderated / (degrees + 1))
    assert t == pytest.approx(numbers(case["t"]), rel=1e-6)
    assert 2 * special.stdtr(total, -np.abs(t)) == pytest.approx(numbers(case["p"]), rel=1e-5)


def test_many_tables_at_once_are_the_tables_one_by_one():
    variances = np.random.default_rng(0).chisquare(2, (6, 9))
    for estimate in (limma_prior, cautious_prior):
        together = squeezed(variances, 2.0, estimate(variances, 2.0))
        for number, row in enumerate(variances):
            alone = squeezed(row, 2.0, estimate(row, 2.0))
            assert together[0][number] == pytest.approx(alone[0])
            assert together[1][number] == pytest.approx(alone[1])


@given(st.floats(1e-6, 1e7))
def test_the_inverse_of_trigamma_inverts_it(value):
    assert special.polygamma(1, trigamma_inverse(value)) == pytest.approx(value, rel=1e-6)


def test_the_lower_limit_lies_below_the_estimate():
    generator = np.random.default_rng(1)
    variances = generator.chisquare(4, (2000, 15)) / 4 * 6 / generator.chisquare(6, (2000, 15))
    cautious = cautious_prior(variances, 4.0)
    assert (cautious.degrees <= np.maximum(limma_prior(variances, 4.0).degrees, 1e-2)).mean() > 0.99
    # The true value is 6. The bound is 4, so at most 10 % of the limits may be above 6, and none is.
    assert cautious.degrees.max() <= STRONGEST_PRIOR


def test_the_lower_limit_is_above_the_truth_in_a_tenth_of_the_tables():
    generator = np.random.default_rng(2)
    variances = generator.chisquare(4, (4000, 15)) / 4 * 2 / generator.chisquare(2, (4000, 15))
    above = (cautious_prior(variances, 4.0).degrees > 2).mean()
    assert above < 0.1 + 3 * np.sqrt(0.09 / 4000)


def test_similar_variances_of_many_methods_lend_more_than_unequal_ones():
    generator = np.random.default_rng(3)
    equal = generator.chisquare(2, 31) / 2
    unequal = equal * np.where(np.arange(31) % 2, 25, 1)
    assert cautious_prior(equal, 2.0).degrees > 1.5 * cautious_prior(unequal, 2.0).degrees


def test_fewer_than_three_methods_lend_nothing():
    prior = cautious_prior([1.0, 1.1], [4.0, 4.0])
    assert (prior.degrees, prior.pooled_degrees) == (0, 8)
    moderated, degrees = squeezed([1.0, 1.1], [4.0, 4.0], prior)
    assert (moderated.tolist(), degrees.tolist()) == ([1.0, 1.1], [4.0, 4.0])


def test_runs_without_variation_say_nothing_about_the_others():
    variances = np.array([1.0, 1.3, 0.8, 1.1])
    alone = cautious_prior(variances, 3.0)
    with_constant = cautious_prior(np.append(variances, [0.0, 1e-12]), 3.0)
    assert (with_constant.variance, with_constant.degrees) == (alone.variance, alone.degrees)
    moderated, _ = squeezed(np.append(variances, 0.0), 3.0, alone)
    assert 0 < moderated[-1] < moderated[:-1].min()


def test_a_single_run_gets_the_prior_variance():
    variances, degrees = [1.0, 1.3, 0.8, 1.1, 0.0], [3.0, 3.0, 3.0, 3.0, 0.0]
    prior = cautious_prior(variances, degrees)
    moderated, total = squeezed(variances, degrees, prior)
    assert moderated[-1] == pytest.approx(1.05)
    assert total[-1] == prior.degrees > 0
