"""The values of methods, their means and errors: the same for intervals, tests, ranks, gains and boards."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import special

from results.answer.intervals import Interval, student_t_interval, t_quantile
from results.answer.pair_tests import MOST_DEGREES, MeanErrors, Numbers, pool_or_own
from results.answer.question import AskedMethod, Question
from results.answer.values import Incomplete, MethodValues, Runs

FAR, BELOW_HALF, FEW, GAP = 10.0, 3.0, 4.0, 1.5
"""A search failed if it lies more than `FAR (1 + FEW / m)` deviations below the median of its method's searches, for m
absolute deviations that the deviation is from. Below half of its method's best, `BELOW_HALF (1 + FEW / m)` are enough.
In both cases it lies further below those that did not fail than `GAP` times their range."""

NORMAL_MEDIANS = (
    *(0.689572, 0.486347, 0.683079, 0.526910, 0.679573, 0.561645, 0.679166, 0.586674, 0.678445, 0.602955, 0.677765),
    *(0.614143, 0.677810, 0.622879, 0.677103, 0.628715, 0.676695, 0.633814),
)
"""Median absolute deviation from the median of 3, 4, 5 and so on standard normal values, for odd numbers without the
value that is the median; by simulation of 200,000 samples. More than 20 are taken as 20."""

_ROUNDING = 1e-12

_OF_LOSSES = 4
"""The number of the pool of methods that are searched and trained."""


def method_values(question: Question, runs: Runs) -> dict[str, MethodValues]:
    """Return the independent values of all asked methods from the values of their runs.

    The runs of one search share the setting that it found. So where searches are repeated, the values are the means of
    the complete searches. Else they are the runs. Values that failed are set aside.
    """
    found = {key: _all_values(planned, runs.get(key, {})) for key, planned in question.methods.items()}
    if question.sample.test != "pooled" or question.keep_all:
        return found  # Runs of single searches do not show how much searches vary, and pairs are not parted.
    pools: dict[tuple[bool, ...], dict[str, MethodValues]] = {}
    for key, own in found.items():
        planned = own.planned
        pool = planned.constant, planned.searched, planned.trained, planned.left_out is None
        pools.setdefault(pool, {})[key] = own
    set_aside = (_without_failed(pool, question) for pool in pools.values())
    return {**found, **{key: own for pool in set_aside for key, own in pool.items()}}


def _all_values(planned: AskedMethod, runs: Mapping[int, list[float]]) -> MethodValues:
    if planned.searches:
        complete = [values for values in runs.values() if len(values) >= planned.runs]
        units, count = [float(np.mean(values)) for values in complete], sum(map(len, complete))
        missing: Incomplete | None = "searches missing" if len(units) < planned.searches else None
    else:
        units = [value for values in runs.values() for value in values]
        count, missing = len(units), "runs missing" if len(units) < planned.runs else None
    return MethodValues(tuple(units), count, planned, "older evaluation" if planned.older else missing)


def _without_failed(values: Mapping[str, MethodValues], question: Question) -> dict[str, MethodValues]:
    """Set the searches (or runs) aside that failed: what remains is a method's typical search."""
    most = max((len(own.units) for own in values.values()), default=0)
    if most < 3:
        return dict(values)
    padded = [[*own.units, *[np.nan] * (most - len(own.units))] for own in values.values()]
    found = {}
    low_ones = failed(question.sign * np.array(padded), question.step, half=question.half_can_fail)
    for (key, own), low in zip(values.items(), low_ones.tolist(), strict=True):
        kept = tuple(one for one, is_low in zip(own.units, low, strict=False) if not is_low)
        aside = tuple(one for one, is_low in zip(own.units, low, strict=False) if is_low)
        found[key] = replace(own, units=kept, failed=aside) if aside else own
    return found


def failed(values: Numbers, step: float = 0.0, *, half: bool = True) -> npt.NDArray[np.bool_]:
    """Tell which searches (or runs) failed, in tables of shape (..., methods, searches); NaN where there is none.

    The deviation is robust and pooled: the median of all methods' absolute deviations from their medians, each divided
    by its median for normal values. A value failed if it lies far below its method's median, or below half of the
    method's best and less far. All low values of a method failed, or none: those of a method that varies much have no
    gap above them. Never as many are set aside as remain. docs/comparisons.md has the simulated errors.

    Args:
        values: Higher is better.
        step: Smallest step of the score. A deviation that is no larger tells nothing.
        half: Whether half of the best means anything: not for scores of unknown origin, of which 100 - x is as good.
    """
    counts = np.isfinite(values).sum(axis=-1, keepdims=True)
    values = np.where(counts > 2, values, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # Of methods with fewer than three values.
        medians, best = np.nanmedian(values, axis=-1, keepdims=True), np.nanmax(values, axis=-1, keepdims=True)
        deviations = np.sort(np.abs(values - medians), axis=-1)
        deviations[..., :1][counts % 2 == 1] = np.nan  # An odd number has a value that is the median.
        parts = deviations / np.take(NORMAL_MEDIANS, np.clip(counts - 3, 0, len(NORMAL_MEDIANS) - 1))
        number = np.isfinite(parts).sum(axis=(-2, -1), keepdims=True)
        deviation = np.nanmedian(parts, axis=(-2, -1), keepdims=True)
    width = (1 + FEW / np.maximum(number, 1)) * deviation
    low = values < medians - FAR * width
    if half:
        low |= (values < best / 2) & (best > 0) & (values < medians - BELOW_HALF * width)
    low &= deviation > np.maximum(step, _ROUNDING * np.abs(medians))
    lowest = np.where(low, np.inf, np.nan_to_num(values, nan=np.inf)).min(axis=-1, keepdims=True)
    gap = lowest - np.where(low, values, -np.inf).max(axis=-1, keepdims=True)
    return np.asarray(low & (gap > GAP * (best - lowest)) & (2 * low.sum(axis=-1, keepdims=True) < counts))


def intervals_of(question: Question, runs: Runs, values: Mapping[str, MethodValues]) -> dict[str, Interval]:
    """Return mean and 95 % interval of every method with runs: those of the comparison (`mean_half_widths`).

    A method with missing searches has no interval, nor has a mean over datasets. The interval of a row that is not
    compared, where each method was searched once, and over blocks that methods share, is Student's t over its own
    values; over folds with the variance of `paired_differences`.
    """
    pooled = question.sample.test == "pooled"
    widths = mean_half_widths({key: values[key] for key in question.compared}, question.step) if pooled else {}
    intervals = {}
    for key, own in values.items():
        if key not in runs:
            continue
        if not own.units:  # No search is complete.
            intervals[key] = Interval(float(np.mean([one for search in runs[key].values() for one in search])), None, 0)
            continue
        alone = _alone(question, own)
        incomplete = own.missing == "searches missing"
        half_width = None if incomplete else widths.get(key, alone.half_width)
        intervals[key] = Interval(alone.mean, half_width, own.n)
    return intervals


def _alone(question: Question, own: MethodValues) -> Interval:
    """The interval of a method over its own values."""
    if own.summary:
        deviation, number = own.summary
        if number < 2:
            return Interval(own.mean, None, number)
        shares = 1 / number + (1 / (number - 1) if question.folds else 0)
        return Interval(own.mean, t_quantile(0.975, number - 1) * deviation * shares**0.5, number)
    alone = student_t_interval(own.units)
    if question.sample.test == "ranks":
        return Interval(alone.mean, None, alone.n)
    if question.folds and alone.half_width is not None:
        return Interval(alone.mean, alone.half_width * (1 + alone.n / (question.folds - 1)) ** 0.5, alone.n)
    return alone


def mean_errors(
    values: Mapping[str, MethodValues],
    names: Sequence[str],
    resolution: float,
    between_searches: float = 0.0,
    more: int = 0,
) -> MeanErrors:
    """Errors of the means, or those that `more` units of each would have with the same variances.

    Methods of one kind (searched or given, trained or computed) pool their variances. Searches of losses are taken to
    vary by no less than `between_searches`, a standard deviation.
    """
    floor = max(resolution**2 / 12, np.finfo(float).tiny)
    means = np.array([values[name].mean for name in names])
    squares, degrees = np.full(len(names), floor), np.full(len(names), MOST_DEGREES)
    # A constant method has no error but that of rounding.
    kinds = (values[name].planned for name in names)
    pool = np.array([0 if one.constant else 1 + 2 * one.searched + one.trained for one in kinds], dtype=np.intp)
    for number in range(1, 5):
        own = np.flatnonzero(pool == number)
        if own.size:
            units = [values[names[int(i)]].units for i in own]
            variances = np.array([values[names[int(i)]].variance for i in own])
            least = max(floor, between_searches**2) if number == _OF_LOSSES else floor
            pooled = pool_or_own(means[own], variances, [len(of_method) for of_method in units], least, more)
            squares[own], degrees[own] = pooled.squares, pooled.degrees
    return MeanErrors(means, squares, degrees, pool)


def mean_half_widths(values: Mapping[str, MethodValues], resolution: float = 0.0) -> dict[str, float]:
    """Half widths of the 95 % intervals of means over searches, for the methods with at least two complete searches.

    The variances are those of the comparison: pooled over the methods, or the method's own if that is larger.
    """
    names = [
        name for name, given in values.items() if not given.planned.constant and not given.missing and given.units[1:]
    ]
    errors = mean_errors(values, names, resolution)
    widths = special.stdtrit(errors.degrees, 0.975) * np.sqrt(errors.squares)
    return dict(zip(names, widths.tolist(), strict=True))
