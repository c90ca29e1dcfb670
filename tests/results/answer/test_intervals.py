"""Student-t intervals over runs, and the verdict against a published value on simulated reproductions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.answer.intervals import (
    PublishedMean,
    deviation_of_interval,
    half_width_of,
    prediction_interval,
    published_verdict,
    student_t_interval,
    t_quantile,
)

values_of_runs = st.lists(st.floats(-1, 1).map(lambda x: round(x, 6)), min_size=2, max_size=20)


@given(values_of_runs)
def test_it_is_scipys_t_interval(values):
    interval = student_t_interval(values)
    spread = stats.sem(values)
    assert interval.n == len(values)
    assert interval.mean == pytest.approx(sum(values) / len(values), abs=1e-12)
    if spread > 1e-9:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=spread)
        assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9, abs=1e-12)
        deviation = deviation_of_interval(interval.half_width, len(values))
        assert deviation == pytest.approx(np.std(values, ddof=1), rel=1e-9)


def test_parts_that_add_up_to_no_positive_variance_have_no_width():
    assert half_width_of([(1.0, 4), (-1.0, 10)]) == 0.0
    assert half_width_of([(1.0, 4), (-2.0, 10)]) == 0.0


@pytest.mark.parametrize("degrees", [1, 2, 3, 9, 9.7, 45, 1e6])
def test_digits_equal_those_of_scipy_stats(degrees):
    noise = np.random.default_rng(0)
    for p in (0.9, 0.95, 0.975, 0.995, *noise.random(20)):
        assert t_quantile(p, degrees) == stats.t.ppf(p, degrees)


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


def test_a_wrong_mean_is_found():
    assert share_outside(10, 10, mean=0.3 + 2 * TRUE_DEVIATION) > 0.95


def test_the_interval_is_the_formula():
    for ours in ([0.30, 0.33], [0.30, 0.31, 0.335]):
        n, mean = len(ours), np.mean(ours)
        half = stats.t.ppf(0.975, n - 1) * np.std(ours, ddof=1) * np.sqrt(1 / n + 1 / 4)
        interval = prediction_interval([ours], PublishedMean(0.3, runs=4))
        assert (interval.mean, interval.half_width, interval.n) == (pytest.approx(mean), pytest.approx(half), n)


@pytest.mark.parametrize(("runs", "deviation"), [(1, None), (4, None), (1, 0.03), (3, 0.03)])
def test_with_several_searches_the_published_mean_is_one_more_of_them(runs, deviation):
    ours, means = [[0.28, 0.25], [], [0.31, 0.33, 0.29]], [0.265, 0.31]
    degrees = 3 + (runs - 1) * (deviation is not None)
    within = (0.00045 + 0.0008 + (runs - 1) * (deviation or 0) ** 2) / degrees
    parts = [(np.var(means, ddof=1) * 3 / 2, 1)]
    if (fewer := 1 / runs - (1 / 2 + 1 / 3) / 2) > 0:
        parts.append((within * fewer, degrees))
    variance = sum(part for part, _ in parts)
    satterthwaite = variance**2 / sum(part**2 / count for part, count in parts)
    interval = prediction_interval(ours, PublishedMean(0.3, runs=runs, deviation=deviation))
    assert interval.half_width == pytest.approx(stats.t.ppf(0.975, satterthwaite) * variance**0.5)
    assert (interval.mean, interval.n) == (pytest.approx(np.mean(means)), 5)


def test_verdicts():
    ours = [[0.49, 0.51, 0.50]]
    half = stats.t.ppf(0.975, 2) * 0.01 * np.sqrt(1 / 3 + 1)
    for value, verdict in ((0.5 - half + 1e-6, "inside"), (0.5 - half - 1e-6, "above"), (0.5 + half + 1e-6, "below")):
        assert published_verdict(ours, PublishedMean(value)) == verdict
    for edge in (0.5 + half + 1e-6, 0.5 - half - 1e-6):
        assert published_verdict(ours, PublishedMean(edge, rounding=0.0005)) == "inside"
    assert published_verdict([[0.5, 0.5]], PublishedMean(0.5)) == "inside"
    assert published_verdict([[0.5]], PublishedMean(0.5)) == "no interval"
    assert published_verdict([[0.5]], PublishedMean(0.5, runs=10, deviation=0.01)) == "inside"
    with pytest.raises(ValueError, match="needs at least one run"):
        published_verdict([[]], PublishedMean(0.5))
    assert published_verdict(None, PublishedMean(0.5)) == "not run"
    assert published_verdict(ours, None) == "not published"
