"""Average ranks over blocks, Friedman's test and Nemenyi's critical difference, as a value that a figure can draw.

Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, Journal of Machine Learning Research 7, 2006.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class CriticalDifference:
    """Methods by average rank, 1 being the best.

    methods, ranks: the best first. difference: average ranks that differ by at least this differ significantly.
    cliques: the largest groups of methods that do not, each in order of rank. statistic, p: Friedman's test that all
    methods rank alike, None for two methods, where it is not defined. blocks: that count; left_out: blocks in which a
    method is missing.
    """

    methods: tuple[str, ...]
    ranks: tuple[float, ...]
    blocks: int
    left_out: int
    statistic: float | None
    p: float | None
    difference: float
    alpha: float
    cliques: tuple[tuple[str, ...], ...]


def critical_difference(methods: Mapping[str, Mapping[Any, float]], alpha: float = 0.05) -> CriticalDifference:
    """Ranks methods within every block that all of them have a value in; higher values are better.

    methods: by name, values by block, such as matched runs of one or several datasets (`matching.run_values`). Runs of
    one dataset are no independent problems: with them as blocks, the test speaks for that dataset only. Raises
    ValueError with fewer than two methods or two common blocks.
    """
    names = list(methods)
    if len(names) < 2:
        raise ValueError("average ranks need at least two methods")
    everywhere = [block for block in methods[names[0]] if all(block in methods[name] for name in names)]
    if len(everywhere) < 2:
        raise ValueError(f"average ranks need at least two runs that all of {', '.join(names)} have in common")
    values = np.array([[methods[name][block] for name in names] for block in everywhere])
    average = stats.rankdata(-values, axis=1).mean(axis=0)
    order = np.argsort(average, kind="stable")
    ordered, ranks = [names[i] for i in order], [float(average[i]) for i in order]
    gap = nemenyi_difference(len(names), len(everywhere), alpha)
    statistic, p = _friedman(values)
    return CriticalDifference(
        methods=tuple(ordered),
        ranks=tuple(ranks),
        blocks=len(everywhere),
        left_out=len({block for own in methods.values() for block in own}) - len(everywhere),
        statistic=statistic,
        p=p,
        difference=gap,
        alpha=alpha,
        cliques=_cliques(ordered, ranks, gap),
    )


def nemenyi_difference(methods: int, blocks: int, alpha: float = 0.05) -> float:
    """q_alpha sqrt(k (k + 1) / (6 N)), q from the studentized range divided by sqrt(2) (Demšar, section 3.2.2)."""
    q = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * blocks))


def _friedman(values: np.ndarray) -> tuple[float | None, float | None]:
    if values.shape[1] < 3:
        return None, None
    if np.all(values == values[:, :1]):
        return 0.0, 1.0
    outcome = stats.friedmanchisquare(*values.T)
    return float(outcome.statistic), float(outcome.pvalue)


def _cliques(names: Sequence[str], ranks: Sequence[float], gap: float) -> tuple[tuple[str, ...], ...]:
    """Longest stretches of neighbours whose ends differ by less than the gap; stretches within another are left out."""
    stretches, covered = [], 0
    for first in range(len(names)):
        last = max(i for i in range(first, len(names)) if ranks[i] - ranks[first] < gap)
        if last > first and last + 1 > covered:
            stretches.append(tuple(names[first : last + 1]))
            covered = last + 1
    return tuple(stretches)
