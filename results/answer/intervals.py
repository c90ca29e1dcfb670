"""Student-t intervals over runs (specification, section 8), and prediction intervals for published means.

A faithful reproduction draws its runs from the distribution that the published runs came from. The difference of the
two means then varies with s sqrt(1/n + 1/m), for our n runs and the m runs behind the published mean. The published
mean lies outside our prediction interval in 5 % of such cases (tests/results/answer/test_intervals.py
simulates this). If our search was repeated, the searches vary as well and the interval contains their variation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

PublishedVerdict = Literal[
    "inside",
    "above",
    "below",
    "not run",
    "no interval",
    "not published",
    "quoted",
    "source unclear",
    "method not in the suite",
    "cannot be determined",
]
"""Position of our prediction interval relative to a published value, or the reason why the two are not compared.

A value that its paper quoted from another paper is not compared: our runs under the first paper's conditions are no
reproduction of it.
"""


def t_quantile(p: float, degrees: float) -> float:
    """Return the value that a t variable stays below with probability `p`, as `scipy.stats.t.ppf`."""
    return float(special.stdtrit(degrees, p))


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

    def within(self, ends: tuple[float, float]) -> tuple[float, float] | None:
        """The lower and the upper end, none beyond those of the scale; None without an interval."""
        if self.half_width is None:
            return None
        return max(self.mean - self.half_width, ends[0]), min(self.mean + self.half_width, ends[1])


def student_t_interval(values: Sequence[float]) -> Interval:
    """Compute the mean and the 95 % Student-t interval of a value over runs."""
    if not values:
        raise ValueError("an interval needs at least one run")
    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Interval(mean, None, n)
    return Interval(mean, t_quantile(0.975, n - 1) * float(np.std(values, ddof=1)) / n**0.5, n)


def half_width_of(parts: Sequence[tuple[float, float]]) -> float:
    """Compute the half width of a 95 % interval whose variance has several independently estimated parts.

    Each part of the variance of the mean has its degrees of freedom; a part may be negative. The degrees of freedom are
    Satterthwaite's (Biometrics Bulletin 2(6), 1946). The half width is 0 if the parts do not add up to a positive
    variance.
    """
    variance = math.fsum(part for part, _ in parts)
    if variance <= 0:
        return 0.0
    degrees = variance**2 / math.fsum(part**2 / count for part, count in parts)
    return t_quantile(0.975, degrees) * math.sqrt(variance)


@dataclass(frozen=True)
class PublishedMean:
    """A published value as a measurement.

    Attributes:
        value: The value, in the unit of our runs.
        rounding: Half a unit of its last digit. The mean can differ from the published value by this.
        runs: Number of runs behind the value. 1 if the paper does not say: this gives the widest interval.
        deviation: Standard deviation between these runs, if the paper's ± gives it; else None.
    """

    value: float
    rounding: float = 0.0
    runs: int = 1
    deviation: float | None = None


def prediction_interval(ours: Sequence[Sequence[float]], published: PublishedMean) -> Interval | None:
    """Compute where the published mean must lie if our runs reproduce it faithfully.

    With one search the half width is t s sqrt(1/n + 1/m), where s pools the variances of our runs and, if its deviation
    is known, of the published runs. With several searches our unit is the mean of a search. The published mean is one
    more search. Its number of runs may be smaller than that of our searches; the missing variance between runs is
    added, with degrees of freedom by Satterthwaite's formula. None if neither our runs nor the paper show how much runs
    vary.
    """
    searches = [np.asarray(runs, dtype=float) for runs in ours if len(runs)]
    if not searches:
        raise ValueError("a comparison with a published value needs at least one run")
    means = np.array([runs.mean() for runs in searches])
    n = sum(len(runs) for runs in searches)
    within, degrees = _variance_of_runs(searches, published)
    parts: list[tuple[float, float]] = []
    if len(searches) > 1:
        parts.append((float(means.var(ddof=1)) * (1 + 1 / len(searches)), len(searches) - 1))
        fewer_runs = 1 / published.runs - float(np.mean([1 / len(runs) for runs in searches]))
        if fewer_runs > 0 and degrees:
            parts.append((within * fewer_runs, degrees))
    elif degrees:
        parts.append((within * (1 / n + 1 / published.runs), degrees))
    mean = float(means.mean())
    return Interval(mean, half_width_of(parts), n) if parts else None


def published_verdict(ours: Sequence[Sequence[float]] | None, published: PublishedMean | None) -> PublishedVerdict:
    """Compare our runs with a published mean. `no interval`: neither our runs nor the paper show how much runs vary."""
    if ours is None:
        return "not run"
    if published is None:
        return "not published"
    interval = prediction_interval(ours, published)
    if interval is None or interval.low is None or interval.high is None:
        return "no interval"
    if interval.low > published.value + published.rounding:
        return "above"
    return "below" if interval.high < published.value - published.rounding else "inside"


def deviation_of_interval(half_width: float, runs: int) -> float:
    """Return the standard deviation of runs from the half width of their 95 % Student-t interval."""
    return half_width * math.sqrt(runs) / t_quantile(0.975, runs - 1)


def _variance_of_runs(searches: Sequence[np.ndarray], published: PublishedMean) -> tuple[float, int]:
    """Variance between runs of one search, pooled over ours and the published ones, and its degrees of freedom."""
    squares = [float(((runs - runs.mean()) ** 2).sum()) for runs in searches]
    degrees = sum(len(runs) - 1 for runs in searches)
    if published.deviation is not None:
        squares.append((published.runs - 1) * published.deviation**2)
        degrees += published.runs - 1
    return math.fsum(squares) / max(1, degrees), degrees
