"""The verdict against a published value, on simulated reproductions whose truth is known."""

import numpy as np
import pytest
from scipy import stats

from results.statistics.intervals import student_t_interval
from results.statistics.published_verdict import (
    PublishedMean,
    deviation_of_interval,
    prediction_interval,
    published_verdict,
)

TRUE_DEVIATION = 0.004
REPEATS = 4000


def share_outside(n, m, *, known=False, searches=1, search_deviation=0.0, mean=0.3, seed=0):
    """Share of faithful reproductions that the verdict puts outside. Published values have four digits."""
    rng = np.random.default_rng(seed)
    outside = 0
    for _ in range(REPEATS):
        effects = rng.normal(0, search_deviation, searches + 1)
        ours = [effect + rng.normal(0.3, TRUE_DEVIATION, n) for effect in effects[1:]]
        theirs = effects[0] + rng.normal(mean, TRUE_DEVIATION, m)
        deviation = None
        if known:
            # The ± terms of MLRC are known to one decimal of a percentage.
            half_width = round(100 * float(student_t_interval(list(theirs)).half_width), 1) / 100
            deviation = deviation_of_interval(half_width, m)
        published = PublishedMean(round(float(theirs.mean()), 4), 0.00005, m, deviation)
        outside += published_verdict(ours, published) in ("above", "below")
    return outside / REPEATS


# Three standard errors of a proportion of 0.05, and the width that rounding adds.
NEAR_FIVE_PERCENT = pytest.approx(0.05, abs=3 * (0.05 * 0.95 / REPEATS) ** 0.5 + 0.003)


@pytest.mark.long
@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 1), (10, 1), (3, 10), (10, 10)])
def test_a_faithful_reproduction_is_outside_in_5_of_100_cases(n, m):
    assert share_outside(n, m) == NEAR_FIVE_PERCENT


@pytest.mark.parametrize("n", [1, 2, 10])
def test_a_published_deviation_is_pooled_with_ours(n):
    assert share_outside(n, 10, known=True) == NEAR_FIVE_PERCENT


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 1)])
def test_repeated_searches_are_allowed_for(n, m):
    assert share_outside(n, m, searches=4, search_deviation=0.006) == NEAR_FIVE_PERCENT


def test_a_search_that_was_not_repeated_leaves_its_own_variation_out():
    assert share_outside(10, 10, search_deviation=0.006) > 0.4


def test_an_interval_of_the_mean_alone_would_reject_half_of_faithful_reproductions():
    """The verdict that this one replaced."""
    rng = np.random.default_rng(1)
    outside = 0
    for _ in range(REPEATS):
        interval = student_t_interval(list(rng.normal(0.3, TRUE_DEVIATION, 10)))
        outside += not interval.low <= rng.normal(0.3, TRUE_DEVIATION) <= interval.high
    assert outside / REPEATS == pytest.approx(0.51, abs=0.03)


def test_a_wrong_mean_is_found():
    assert share_outside(10, 10, mean=0.3 + 2 * TRUE_DEVIATION) > 0.95


def test_the_interval_is_the_formula():
    ours = [0.30, 0.31, 0.335]
    half = stats.t.ppf(0.975, 2) * np.std(ours, ddof=1) * np.sqrt(1 / 3 + 1 / 4)
    interval = prediction_interval([ours], PublishedMean(0.3, runs=4))
    assert (interval.mean, interval.half_width, interval.n) == (pytest.approx(0.315), pytest.approx(half), 3)


def test_verdicts():
    ours = [[0.49, 0.51, 0.50]]
    half = stats.t.ppf(0.975, 2) * 0.01 * np.sqrt(1 / 3 + 1)
    for value, verdict in ((0.5 - half + 1e-6, "inside"), (0.5 - half - 1e-6, "above"), (0.5 + half + 1e-6, "below")):
        assert published_verdict(ours, PublishedMean(value)) == verdict
    assert published_verdict(ours, PublishedMean(0.5 + half + 1e-6, rounding=0.0005)) == "inside"
    assert published_verdict([[0.5]], PublishedMean(0.5)) == "no interval"
    assert published_verdict([[0.5]], PublishedMean(0.5, runs=10, deviation=0.01)) == "inside"
    assert published_verdict(None, PublishedMean(0.5)) == "not run"
    assert published_verdict(ours, None) == "not published"


def test_a_comparison_without_runs_is_an_error():
    with pytest.raises(ValueError, match="at least one run"):
        prediction_interval([[]], PublishedMean(0.5))
