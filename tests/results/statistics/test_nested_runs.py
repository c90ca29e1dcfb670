"""Runs that nest in searches: intervals and tests that contain both levels, on simulated data of known truth."""

import numpy as np
import pytest

from results.statistics.intervals import student_t_interval
from results.statistics.method_comparison import compare_methods
from results.statistics.run_values import (
    RunKey,
    SearchKey,
    by_search,
    independent_values,
    run_values,
    search_interval,
    values_by_run,
)
from tests.support.sample_records import some_run

REPEATS = 3000
NEAR_95_PERCENT = pytest.approx(0.95, abs=3 * (0.05 * 0.95 / REPEATS) ** 0.5)


def simulated(rng, searches, runs, mean=0.3, of_search=0.01, of_run=0.005):
    effects = rng.normal(0, of_search, searches)
    return {
        RunKey("glyphs", 0, run, search): mean + effects[search] + rng.normal(0, of_run)
        for search in range(searches)
        for run in range(runs)
    }


def coverage(interval_of, truth, draws):
    intervals = [interval_of(draw) for draw in draws]
    return float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))


@pytest.mark.long
@pytest.mark.parametrize(("searches", "runs"), [(2, 3), (3, 3), (5, 10)])
def test_the_interval_covers_the_mean_over_searches(searches, runs):
    rng = np.random.default_rng(0)
    draws = [simulated(rng, searches, runs) for _ in range(REPEATS)]
    assert coverage(search_interval, 0.3, draws) == NEAR_95_PERCENT


def test_an_interval_over_all_runs_would_promise_too_much():
    rng = np.random.default_rng(0)
    draws = [list(simulated(rng, 3, 3).values()) for _ in range(REPEATS)]
    assert coverage(student_t_interval, 0.3, draws) < 0.85


def difference_coverage(searches):
    rng = np.random.default_rng(1)
    pairs = []
    for _ in range(REPEATS):
        a = simulated(rng, searches[0], 4, mean=0.32)
        # A method without a search has runs only.
        b = simulated(rng, searches[1], 4, of_search=0.01 if searches[1] > 1 else 0.0)
        pairs.append({"a": independent_values(a), "b": independent_values(b)})
    return coverage(lambda pair: compare_methods(pair).pairs[0], 0.02, pairs)


@pytest.mark.long
@pytest.mark.parametrize("searches", [(3, 3), (4, 1), (3, 5)])
def test_differences_of_searched_methods_cover_the_true_difference(searches):
    assert difference_coverage(searches) >= 0.95 - 3 * (0.05 * 0.95 / REPEATS) ** 0.5


@pytest.mark.long
def test_two_searches_beside_five_cover_a_little_less():
    """Satterthwaite's degrees of freedom are too many where the smaller sample has two values."""
    assert 0.92 < difference_coverage((2, 5)) < 0.95


def test_one_search_keeps_its_runs_and_several_count_once_each():
    one = {RunKey("glyphs", 0, 0): 0.1, RunKey("glyphs", 0, 1): 0.2}
    assert independent_values(one) == one
    assert search_interval(one) == student_t_interval([0.1, 0.2])
    two = {**one, RunKey("glyphs", 0, 0, 1): 0.5}
    assert by_search(two) == {SearchKey("glyphs", 0, 0): [0.1, 0.2], SearchKey("glyphs", 0, 1): [0.5]}
    assert independent_values(two) == {SearchKey("glyphs", 0, 0): pytest.approx(0.15), SearchKey("glyphs", 0, 1): 0.5}
    assert search_interval(two).mean == pytest.approx(0.325)
    assert search_interval(two).n == 3


def test_keys_of_runs_and_of_searches_are_never_equal():
    assert RunKey("glyphs", 0, 1) != SearchKey("glyphs", 0, 1)


def test_runs_of_equal_numbers_in_two_searches_are_two_runs():
    records = [some_run(run=0, search=search, separated=0.4 + search) for search in (0, 1)]
    assert len(values_by_run(records, "precision_at_1", "separated")["triplet"]) == 2
    assert list(run_values(records, "precision_at_1", "separated")["triplet"].values()) == [0.4, 1.4]
