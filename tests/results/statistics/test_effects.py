"""Effect sizes: hand-calculated, a published interval, numerical integration, simulation."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from results.statistics.effects import _noncentralities, paired_effect, unpaired_effect


def test_a_published_interval_of_noncentrality():
    """The example of conf.limits.nct in Kelley's MBESS: t = 2.83 with 126 degrees of freedom."""
    assert _noncentralities(2.83, 126, 0.95) == pytest.approx((0.8337502, 4.815359), rel=1e-6)


def cumulated(t, degrees, noncentrality):
    """P(T <= t) by integrating over the chi-distributed denominator."""

    def density(s):
        return stats.norm.cdf(t * s - noncentrality) * stats.chi.pdf(s * math.sqrt(degrees), degrees)

    total, _ = integrate.quad(density, 0, 1 + 12 / math.sqrt(degrees), points=[1.0], limit=400)
    return total * math.sqrt(degrees)


@pytest.mark.parametrize("t", [-60.0, -2.0, 0.0, 0.3, 4.0, 25.0, 300.0])
@pytest.mark.parametrize("degrees", [1, 2, 9, 18])
def test_the_ends_leave_the_tails_that_they_should(t, degrees):
    low, high = _noncentralities(t, degrees, 0.95)
    assert cumulated(t, degrees, low) == pytest.approx(0.975, abs=2e-5)
    assert cumulated(t, degrees, high) == pytest.approx(0.025, abs=2e-5)


@pytest.mark.parametrize("degrees", [1, 9, 200])
def test_differences_that_hardly_vary_have_an_interval_as_well(degrees):
    below, above = _noncentralities(999.9, degrees, 0.95), _noncentralities(1000.1, degrees, 0.95)
    assert above == pytest.approx([end * 1000.1 / 999.9 for end in below], rel=1e-3)
    low, high = _noncentralities(1e10, degrees, 0.95)
    ends = stats.chi2.ppf([0.025, 0.975], degrees)
    assert (low, high) == pytest.approx(tuple(1e10 * np.sqrt(ends / degrees)))


def test_d_z_by_hand():
    found = paired_effect([0.01, 0.02, 0.03])
    assert found.name == "d_z"
    assert found.value == pytest.approx(2.0)
    assert found.low < 2.0 < found.high


def test_g_by_hand():
    """Means 3 and 1, both variances 1: d = 2, and J(4) = gamma(2) / (sqrt(2) gamma(3/2)) = 0.79788."""
    found = unpaired_effect([2.0, 3.0, 4.0], [0.0, 1.0, 2.0])
    assert found.name == "g"
    assert found.value == pytest.approx(2 * 0.7978845608)


def test_the_correction_makes_g_unbiased():
    rng = np.random.default_rng(4)
    values = [unpaired_effect(rng.normal(0.8, 1, 5), rng.normal(0, 1, 5)).value for _ in range(4000)]
    assert np.mean(values) == pytest.approx(0.8, abs=3 * np.std(values) / math.sqrt(4000))
    assert np.mean(values) / math.exp(math.lgamma(4) - math.lgamma(3.5)) * 2 > 0.85  # uncorrected it is too large


def test_intervals_cover_in_95_of_100_experiments():
    rng = np.random.default_rng(6)
    paired = [paired_effect(rng.normal(0.7, 1, 10)) for _ in range(1500)]
    unpaired = [unpaired_effect(rng.normal(0.7, 1, 30), rng.normal(0, 1, 25)) for _ in range(1500)]
    for effects in (paired, unpaired):
        covered = np.mean([effect.low <= 0.7 <= effect.high for effect in effects])
        assert abs(covered - 0.95) < 0.017


def test_runs_that_do_not_vary_have_no_effect_size():
    assert paired_effect([0.1]) is None
    assert paired_effect([0.1, 0.1, 0.1]) is None
    assert unpaired_effect([0.2, 0.2, 0.2], [0.1, 0.1]) is None
    assert unpaired_effect([0.2], [0.1, 0.3]) is None
    assert unpaired_effect([0.2, 0.2], [0.1, 0.3]) is not None


def test_effects_keep_their_size_in_other_units():
    one, two = paired_effect([0.01, 0.03, 0.02]), paired_effect([1.0, 3.0, 2.0])
    assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high))
