"""Student-t intervals over runs (specification, section 8), and intervals from several parts of a variance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from results.statistics.pair_tests import t_quantile


@dataclass(frozen=True)
class Interval:
    """A mean with its two-sided confidence interval.

    Attributes:
        mean: The mean over runs, in the unit of the values.
        half_width: Half the width of the interval: t(0.975, n-1) * s / sqrt(n) at 95 %, where s is the sample standard
            deviation. None if n < 2, since one run does not show the spread.
        n: Number of runs; folds are never counted.
    """

    mean: float
    half_width: float | None
    n: int

    @property
    def low(self) -> float | None:
        """Lower end, or None without an interval."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end, or None without an interval."""
        return None if self.half_width is None else self.mean + self.half_width


def student_t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Compute the mean and the Student-t interval of a value over runs; `confidence` is a fraction of 1."""
    if not values:
        raise ValueError("an interval needs at least one run")
    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Interval(mean, None, n)
    quantile = t_quantile((1 + confidence) / 2, n - 1)
    return Interval(mean, quantile * float(np.std(values, ddof=1)) / n**0.5, n)


def half_width_of(parts: Sequence[tuple[float, float]]) -> float:
    """Compute the half width of a 95 % interval whose variance has several independently estimated parts.

    Each part of the variance of the mean has its degrees of freedom; a part may be negative. The degrees of freedom are
    Satterthwaite's (Biometrics Bulletin 2(6), 1946). The half width is 0 if the parts do not add up to a positive
    variance.
    """
    variance = sum(part for part, _ in parts)
    if variance <= 0:
        return 0.0
    degrees = variance**2 / sum(part**2 / count for part, count in parts)
    return t_quantile(0.975, degrees) * math.sqrt(variance)
