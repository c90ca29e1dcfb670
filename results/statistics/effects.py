"""Standardized effect sizes with exact 95 % confidence intervals from the noncentral t distribution.

Source: Cumming and Finch, Educational and Psychological Measurement 61(4), 2001. The interval holds all noncentralities
for which the observed t is not extreme.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

_HUGE_T = 1000.0


@dataclass(frozen=True)
class Effect:
    """A standardized difference with its two-sided confidence interval.

    Attributes:
        name: `d_z` is the mean of paired differences divided by their standard deviation. `g` is Hedges' g: the
            difference of two means divided by the pooled standard deviation, corrected for small samples.
    """

    name: Literal["d_z", "g"]
    value: float
    low: float
    high: float


def paired_effect(differences: Sequence[float]) -> Effect | None:
    """Compute Cohen's d_z of paired differences; None with fewer than two, or if they do not vary."""
    n = len(differences)
    if n < 2 or (spread := float(np.std(differences, ddof=1))) <= negligible(differences):
        return None
    value = float(np.mean(differences)) / spread
    low, high = _noncentralities(value * math.sqrt(n), n - 1)
    return Effect("d_z", value, low / math.sqrt(n), high / math.sqrt(n))


def unpaired_effect(a: Sequence[float], b: Sequence[float]) -> Effect | None:
    """Compute Hedges' g of a minus b. The interval assumes equal variances.

    None if a method has fewer than two values, or if neither method varies.
    """
    if min(len(a), len(b)) < 2:
        return None
    degrees = len(a) + len(b) - 2
    squares = (len(a) - 1) * np.var(a, ddof=1) + (len(b) - 1) * np.var(b, ddof=1)
    pooled = math.sqrt(float(squares) / degrees)
    if pooled <= negligible([*a, *b]):
        return None
    value = float(np.mean(a) - np.mean(b)) / pooled
    scale = math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    low, high = _noncentralities(value * scale, degrees)
    # Hedges, Journal of Educational Statistics 6(2), 1981, eq. 6e, exact form.
    correction = math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees - 1) / 2)) / math.sqrt(degrees / 2)
    return Effect("g", correction * value, correction * low / scale, correction * high / scale)


def negligible(values: Sequence[float]) -> float:
    """Return the largest standard deviation that rounding errors of these values can cause."""
    return 1e-12 * max(abs(value) for value in values)


def _noncentralities(t: float, degrees: int, confidence: float = 0.95) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    if t < 0:
        low, high = _noncentralities(-t, degrees, confidence)
        return -high, -low
    if t > _HUGE_T:
        # For such t, scipy's inversion does not end. All uncertainty is in the denominator, which is chi-distributed.
        low, high = np.sqrt(special.chdtri(degrees, [1 - tail, tail]) / degrees)
        return t * float(low), t * float(high)
    return float(special.nctdtrinc(degrees, 1 - tail, t)), float(special.nctdtrinc(degrees, tail, t))
