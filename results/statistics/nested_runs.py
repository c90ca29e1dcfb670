"""Runs of repeated searches: runs nest in searches, and the searches are the independent repetitions.

A model with a random effect of the search has value = mean + search + run. If a method was searched s times, with n
runs of each setting, the mean over all has the variance (V_search + V_run / n) / s. The means of the s searches vary
with V_search + V_run / n. So a Student-t interval over these means, with s - 1 degrees of freedom, contains both
levels. For equal numbers of runs it is the exact interval of the random-effects model. Tests of differences use the
means of searches in the same way: paired if two methods have searches of equal numbers, else Welch's test, whose
degrees of freedom are Satterthwaite's. Simulations in tests/results/statistics/test_nested_runs.py show the coverage.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from results.statistics.intervals import Interval, student_t_interval


class RunKey(NamedTuple):
    """Key of a run: dataset, base seed, number of the reproduction, number of its search. Equal keys match."""

    dataset: str
    seed: int
    run: int
    search: int = 0


class SearchKey(NamedTuple):
    """Key of a search that was repeated. Searches of two methods with equal keys match."""

    dataset: str
    seed: int
    search: int


ValueKey = RunKey | SearchKey
"""What a value belongs to: a run, or a search with all its runs."""


def by_search(values: Mapping[RunKey, float]) -> dict[SearchKey, list[float]]:
    """Group the values of a method's runs by search."""
    groups: dict[SearchKey, list[float]] = {}
    for key, value in values.items():
        groups.setdefault(SearchKey(key.dataset, key.seed, key.search), []).append(value)
    return groups


def independent_values(values: Mapping[RunKey, float]) -> dict[ValueKey, float]:
    """Return the values that intervals and tests may treat as independent.

    They are the values themselves if they belong to one search, else the mean of each search.
    """
    groups = by_search(values)
    if len(groups) < 2:
        return {key: value for key, value in values.items()}  # noqa: C416 - a dictionary of the wider type
    return {key: float(np.mean(runs)) for key, runs in groups.items()}


def search_interval(values: Mapping[RunKey, float], confidence: float = 0.95) -> Interval:
    """Compute a method's mean and its interval over runs, or over searches if its search was repeated.

    `n` of the interval is the number of runs.
    """
    interval = student_t_interval(list(independent_values(values).values()), confidence)
    return Interval(interval.mean, interval.half_width, len(values))
