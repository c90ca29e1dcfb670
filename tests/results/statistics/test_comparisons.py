"""The place of our interval relative to a published value: by hand, and as a one-sample t-test."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.statistics.comparisons import verdict
from results.statistics.intervals import Interval, student_t_interval

fractions = st.floats(0, 1).map(lambda x: round(x, 4))
run_lists = st.lists(fractions, min_size=2, max_size=12)


def test_verdicts():
    interval = Interval(0.5, 0.01, 10)
    assert verdict(interval, 0.505) == verdict(interval, 0.49) == verdict(interval, 0.51) == "inside"
    assert verdict(interval, 0.48) == "above"
    assert verdict(interval, 0.52) == "below"
    assert verdict(interval, 0.512, rounding=0.0005) == "below"
    assert verdict(interval, 0.5104, rounding=0.0005) == "inside"
    assert verdict(Interval(0.5, None, 1), 0.5) == "no interval"
    assert verdict(None, 0.5) == "not run"
    assert verdict(interval, None) == "not published"


@given(run_lists, fractions)
def test_a_verdict_is_the_one_sample_t_test(values, printed):
    if np.std(values) > 1e-6:
        p = stats.ttest_1samp(values, printed).pvalue
        if abs(p - 0.05) > 1e-9:
            assert (verdict(student_t_interval(values), printed) == "inside") == (p > 0.05)
