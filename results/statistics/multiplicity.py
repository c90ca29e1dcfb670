"""Correction of p values for the comparisons that were asked for: all pairs, each with the best, each with one method.

With unequal variances an exact level for each family does not exist. The factors were chosen so that at most 5 % of
simulated tables have a wrong claim (docs/comparisons.md, `make calibrate`).
"""

from math import ceil

import numpy as np
import numpy.typing as npt

from results.statistics.pair_tests import Numbers

SHARE_OF_BETTER = 0.75
"""Share of the level for "better" and "beyond the margin". The rest is for "within the margin"."""


def least_factor(methods: int) -> int:
    """Return the smallest factor of a p value: Holm's last factors are too small where few methods differ."""
    pairs = methods * (methods - 1) // 2
    return max(methods - 1, ceil(pairs / 2)) if methods > 2 else 1


def holm(p_values: npt.ArrayLike, least: int = 1, tests: int | None = None) -> Numbers:
    """Adjust p values by Holm's method along the last axis, with no factor below `least`.

    `tests` is the number of tests of the family, if some of them have no p value yet.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, axis=-1)
    factors = np.maximum((tests or p.shape[-1]) - np.arange(p.shape[-1]), least)
    ascending = np.take_along_axis(p, order, axis=-1)
    adjusted = np.maximum.accumulate(np.minimum(factors * ascending, 1.0), axis=-1)
    result = np.empty_like(p)
    np.put_along_axis(result, order, adjusted, axis=-1)
    return result


def with_best(p_values: Numbers, methods: int) -> Numbers:
    """Adjust the p values of the method with the highest mean against the others.

    The data choose the best, which costs a factor for the range: that of the best of r methods above the lowest is
    r (r - 1) / 2. A claim that it is better than every other is one of an intersection and costs k - 1.

    Args:
        p_values: p values of the second, third, ... method by mean on the last axis; the lowest mean comes last.
        methods: Number of methods of the family, at least one more than p values.
    """
    p = np.asarray(p_values, dtype=float)
    rank = np.arange(2, p.shape[-1] + 2) + methods - p.shape[-1] - 1
    factors = np.maximum(rank * (rank - 1) / 2, least_factor(methods))
    step_down = np.maximum.accumulate((factors * p)[..., ::-1], axis=-1)[..., ::-1]
    sweep = (methods - 1) * p.max(axis=-1, keepdims=True)
    return np.asarray(np.minimum(np.minimum(step_down, sweep), 1.0))


def adjusted(p_values: Numbers, compare: str, methods: int) -> Numbers:
    """Adjust the p values of a family: those of all pairs, or those of one method (or of the best) with each other.

    Args:
        p_values: p values on the last axis: of the pairs that have a test, for `best` in the order of `with_best`.
        compare: `all`, `best`, or the name of a method.
        methods: Number of methods of the family, of which some may have no test yet.
    """
    if compare == "best":
        return with_best(p_values, methods)
    if compare == "all":
        return holm(p_values, least_factor(methods), family(compare, methods))
    return holm(p_values, tests=family(compare, methods))


def family(compare: str, methods: int) -> int:
    """Return the number of comparisons that could be claimed. The data choose the best, so any pair can have it."""
    return methods * (methods - 1) // 2 if compare in ("all", "best") else methods - 1


def adjusted_in_one_step(p_values: Numbers, compare: str, methods: int) -> Numbers:
    """Adjust each p value by the size of the family: for "within the margin" of the best, and for assumed deviations.

    An assumed deviation that is too small is too small for all pairs, so that one claim says nothing for the next.
    """
    return np.asarray(np.minimum(family(compare, methods) * p_values, 1.0))
