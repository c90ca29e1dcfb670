"""Quantiles and tails of Student's t have the very digits of `scipy.stats.t`."""

import numpy as np
import pytest
from scipy import stats

from results.statistics.pair_tests import t_quantile, t_tail


@pytest.mark.parametrize("degrees", [1, 2, 3, 9, 9.7, 45, 1e6])
def test_digits_equal_those_of_scipy_stats(degrees):
    noise = np.random.default_rng(0)
    for p in (0.9, 0.95, 0.975, 0.995, *noise.random(20)):
        assert t_quantile(p, degrees) == stats.t.ppf(p, degrees)
    for t in noise.normal(0, 3, 20):
        assert t_tail(t, degrees) == stats.t.sf(t, degrees)
