"""What runs show about a claim, on simulated searches whose truth is known."""

import numpy as np
import pytest

from results.statistics.primary_comparison import primary_comparison
from tests.support.sample_searches import searched

DEVIATION = 0.006


def answered(a, b, searches=3, seed=0, deviation=DEVIATION, pair=("a", "b"), **settings):
    rng = np.random.default_rng(seed)
    means = {"other": 0.21, "b": b, "a": a, "poor": 0.18}
    values = {
        key: [[mean + rng.normal(0, deviation) + rng.normal(0, deviation / 2)] for _ in range(searches)]
        for key, mean in means.items()
    }
    measured = searched(values, searches=searches, runs=1, **settings)
    return primary_comparison(measured).pair(*pair)


def shares(a, b, repeats=100, **settings):
    directions = [answered(a, b, seed=seed, **settings).direction for seed in range(repeats)]
    return {direction: directions.count(direction) / repeats for direction in ("a better", "b better", "cannot tell")}


def test_true_claims_hold_and_wrong_ones_are_contradicted():
    assert shares(0.25, 0.20)["a better"] > 0.9
    assert shares(0.20, 0.25)["b better"] > 0.9


def test_of_equal_methods_hardly_any_claim_holds_or_is_contradicted():
    found = shares(0.20, 0.20)
    assert max(found["a better"], found["b better"]) < 0.05


def test_more_searches_never_turn_a_verdict_but_make_it():
    """A small true difference and a large claim: the direction is found in the end, the size is excluded before."""
    few, many = (answered(0.2015, 0.2, searches=count, deviation=0.0008) for count in (3, 30))
    assert (few.direction, few.claimed_size(0.015)) == ("cannot tell", "excluded")
    assert (many.direction, many.claimed_size(0.015), many.size) == ("a better", "excluded", "within")


def test_the_difference_is_that_of_a_and_b_whatever_the_order_of_the_methods():
    forth, back = answered(0.25, 0.20), answered(0.25, 0.20, pair=("b", "a"))
    assert (forth.a, forth.b, back.a) == ("a", "b", "b")
    assert forth.difference == pytest.approx(-back.difference)
    assert (forth.direction, back.direction) == ("a better", "b better")
    assert (forth.claimed_size(0.05), back.claimed_size(0.05)) == ("compatible", "excluded")
