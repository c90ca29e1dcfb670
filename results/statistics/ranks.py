"""Average ranks of methods, Friedman's test and Nemenyi's critical difference.

Source: Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, Journal of Machine Learning Research 7,
2006.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class CriticalDifference:
    """Methods by average rank, where 1 is the best rank.

    Attributes:
        methods: Names of the methods, the best first.
        ranks: Their average ranks, in the same order.
        blocks: Number of blocks in which every method has a value.
        left_out: Number of blocks in which a method is missing; they are not used.
        statistic: Statistic of Friedman's test that all methods have equal ranks; None for two methods, for which the
            test is not defined.
        p: p value of Friedman's test; None for two methods.
        difference: Nemenyi's critical difference: average ranks that differ by at least this differ significantly.
        alpha: Significance level.
        cliques: The largest groups of methods without a significant difference, each in the order of the ranks.
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
    """Rank methods in every block in which all of them have a value. Higher values are better.

    Args:
        methods: Values by block, by method. A block is, for example, a run that the methods have in common
            (`run_values.run_values`). If all blocks are runs on one dataset, the test holds for that dataset only.
        alpha: Significance level.

    Returns:
        Average ranks with the critical difference.

    Raises:
        ValueError: There are fewer than two methods or fewer than two common blocks.
    """
    names = list(methods)
    if len(names) < 2:
        raise ValueError("average ranks need at least two methods")
    common_blocks = [block for block in methods[names[0]] if all(block in methods[name] for name in names)]
    if len(common_blocks) < 2:
        raise ValueError(f"average ranks need at least two runs that all of {', '.join(names)} have in common")
    values = np.array([[methods[name][block] for name in names] for block in common_blocks])
    average = stats.rankdata(-values, axis=1).mean(axis=0)
    order = np.argsort(average, kind="stable")
    ordered, ranks = [names[i] for i in order], [float(average[i]) for i in order]
    gap = nemenyi_difference(len(names), len(common_blocks), alpha)
    statistic, p = _friedman(values)
    return CriticalDifference(
        methods=tuple(ordered),
        ranks=tuple(ranks),
        blocks=len(common_blocks),
        left_out=len({block for values_by_block in methods.values() for block in values_by_block}) - len(common_blocks),
        statistic=statistic,
        p=p,
        difference=gap,
        alpha=alpha,
        cliques=_cliques(ordered, ranks, gap),
    )


def nemenyi_difference(methods: int, blocks: int, alpha: float = 0.05) -> float:
    """Compute Nemenyi's critical difference, q_alpha sqrt(k (k + 1) / (6 N)) (Demšar, section 3.2.2).

    Args:
        methods: Number of methods, k.
        blocks: Number of blocks, N.
        alpha: Significance level. q_alpha is the quantile of the studentized range divided by sqrt(2).

    Returns:
        The critical difference of average ranks.
    """
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
    """Largest groups of neighbours whose first and last rank differ by less than `gap`; no group contains another."""
    groups, covered = [], 0
    for first in range(len(names)):
        last = max(i for i in range(first, len(names)) if ranks[i] - ranks[first] < gap)
        if last > first and last + 1 > covered:
            groups.append(tuple(names[first : last + 1]))
            covered = last + 1
    return tuple(groups)
