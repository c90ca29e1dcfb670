"""What runs show about a claim, on simulated searches whose truth is known."""

import numpy as np
import pytest

from results.statistics.primary_comparison import primary_score
from results.statistics.print_alone import runs_answer
from tests.support.sample_searches import searched

DEVIATION = 0.006


def answered(a, b, claimed, searches=3, seed=0, deviation=DEVIATION, pair=("a", "b"), **settings):
    rng = np.random.default_rng(seed)
    means = {"other": 0.21, "b": b, "a": a, "poor": 0.18}
    values = {
        key: [[mean + rng.normal(0, deviation) + rng.normal(0, deviation / 2)] for _ in range(searches)]
        for key, mean in means.items()
    }
    measured = searched(values, searches=searches, runs=1, **settings)
    return runs_answer(measured, primary_score(measured), *pair, claimed)


def shares(a, b, claimed, repeats=100, **settings):
    directions = [answered(a, b, claimed, seed=seed, **settings).pair.direction for seed in range(repeats)]
    return {direction: directions.count(direction) / repeats for direction in ("a better", "b better", "cannot tell")}


def test_true_claims_hold_and_wrong_ones_are_contradicted():
    assert shares(0.25, 0.20, 0.05)["a better"] > 0.9
    assert shares(0.20, 0.25, 0.05)["b better"] > 0.9


def test_of_equal_methods_hardly_any_claim_holds_or_is_contradicted():
    found = shares(0.20, 0.20, 0.02)
    assert max(found["a better"], found["b better"]) < 0.05


def test_more_searches_never_turn_a_verdict_but_make_it():
    """A small true difference and a large claim: the direction is found in the end, the size is excluded before."""
    few, many = (answered(0.2015, 0.2, 0.015, searches=count, deviation=0.0008) for count in (3, 30))
    assert (few.pair.direction, few.claimed) == ("cannot tell", "excluded")
    assert (many.pair.direction, many.claimed, many.pair.size) == ("a better", "excluded", "within")


def test_the_difference_is_that_of_a_and_b_whatever_the_order_of_the_methods():
    forth, back = answered(0.25, 0.20, 0.05), answered(0.25, 0.20, 0.05, pair=("b", "a"))
    assert (forth.pair.a, forth.pair.b, back.pair.a) == ("a", "b", "b")
    assert forth.pair.difference == pytest.approx(-back.pair.difference)
    assert (forth.pair.direction, back.pair.direction) == ("a better", "b better")
    assert (forth.claimed, back.claimed) == ("compatible", "excluded")


def test_undecided_claims_say_how_many_searches_they_take():
    answer = answered(0.202, 0.20, 0.002)
    assert answer.pair.direction == "cannot tell"
    assert answer.needed > 3
    assert answer.pair.smallest > 0.002


def test_a_claim_reads_the_comparison_of_the_table():
    answer = answered(0.25, 0.20, 0.05, primary={"margin": 2.0, "compare": "best"})
    assert (answer.comparison.compare, answer.comparison.margin) == ("best", pytest.approx(0.02))
    assert answered(0.25, 0.20, 0.05, primary={"compare": "other"}) is None, "the file asks for other pairs"
    assert answered(0.25, 0.20, 0.05, pair=("a", "absent")) is None


def test_a_single_search_of_few_trials_tells_nothing():
    answer = answered(0.25, 0.15, 0.1, searches=1, trials=3)
    assert (answer.pair.direction, answer.claimed, answer.needed) == ("cannot tell", None, None)
    assert answer.pair.untested == "search not known"
