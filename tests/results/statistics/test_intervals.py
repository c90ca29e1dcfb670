"""Student-t intervals over runs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.statistics.intervals import Interval, half_width_of, student_t_interval

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


@pytest.mark.parametrize(("n", "quantile"), [(2, 12.706204736), (3, 4.302652730), (5, 2.776445105), (10, 2.262157163)])
def test_it_is_the_closed_form_with_the_tables_quantiles(n, quantile):
    values = [0.1 * i for i in range(n)]
    mean = sum(values) / n
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    interval = student_t_interval(values)
    assert interval.half_width == pytest.approx(quantile * deviation / math.sqrt(n), rel=1e-8)
    assert interval.high - interval.low == pytest.approx(2 * interval.half_width)


def test_other_confidences_have_other_quantiles():
    assert student_t_interval([0.0, 1.0], 0.5).half_width == pytest.approx(0.5)  # t(0.75, 1) = 1, s / sqrt(2) = 0.5


def test_one_run_has_no_interval():
    assert student_t_interval([0.25]) == Interval(0.25, None, 1)
    assert student_t_interval([0.25]).low is None
    assert student_t_interval([0.25]).high is None


def test_equal_runs_have_an_interval_of_no_width():
    assert student_t_interval([0.5, 0.5, 0.5]) == Interval(0.5, 0.0, 3)


def test_no_run_is_an_error():
    with pytest.raises(ValueError, match="at least one run"):
        student_t_interval([])


@pytest.mark.parametrize("n", [2, 3, 10])
def test_the_interval_covers_the_true_mean_in_95_of_100_experiments(n):
    draws, true_mean = np.random.default_rng(5).normal(0.3, 0.05, size=(2000, n)), 0.3
    intervals = [student_t_interval(runs.tolist()) for runs in draws]
    covered = sum(i.low <= true_mean <= i.high for i in intervals) / len(intervals)
    # Three standard errors of a proportion of 0.95 over 2000 draws are 0.0146.
    assert abs(covered - 0.95) < 0.0146


def test_a_variance_of_several_parts_has_satterthwaites_degrees_of_freedom():
    assert half_width_of([(4.0, 5)]) == pytest.approx(2 * stats.t.ppf(0.975, 5))
    # (1 + 2)^2 / (1^2 / 4 + 2^2 / 10)
    degrees = 9 / 0.65
    assert half_width_of([(1.0, 4), (2.0, 10)]) == pytest.approx(3**0.5 * stats.t.ppf(0.975, degrees))
    assert half_width_of([(0.25, 4)]) == pytest.approx(0.5 * stats.t.ppf(0.975, 4))


def test_parts_that_add_up_to_no_positive_variance_have_no_width():
    assert half_width_of([(1.0, 4), (-1.0, 10)]) == 0.0
    assert half_width_of([(1.0, 4), (-2.0, 10)]) == 0.0
