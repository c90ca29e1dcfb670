"""Comparison of our runs with a published mean, which is a measurement too.

A faithful reproduction draws its runs from the distribution that the published runs came from. The difference of the
two means then varies with s sqrt(1/n + 1/m), for our n runs and the m runs behind the published mean. The published
mean lies outside our prediction interval in 5 % of such cases (tests/results/statistics/test_published_verdict.py
simulates this). If our search was repeated, the searches vary as well and the interval contains their variation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from results.statistics.intervals import Interval, half_width_of
from results.statistics.pair_tests import t_quantile

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
    return (sum(squares) / degrees if degrees else 0.0), degrees
