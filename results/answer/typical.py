"""The values of methods, their means and errors: the same for intervals, tests, ranks, gains and boards."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from results.answer.intervals import Interval, student_t_interval
from results.answer.pair_tests import MOST_DEGREES, MeanErrors, pool_or_own
from results.answer.question import Question
from results.answer.values import MethodValues, Missing, Runs


def method_values(question: Question, runs: Runs) -> dict[str, MethodValues]:
    """Return the independent values of all asked methods from the values of their runs.

    The runs of one search share the setting that it found. So where searches are repeated, the values are the means of
    the complete searches. Else they are the runs.
    """
    found = {}
    for key, planned in question.methods.items():
        own, missing = runs.get(key, {}), None
        if planned.searches:
            counted = [values for values in own.values() if len(values) >= planned.runs]
            missing = _missing("searches missing", len(counted) < planned.searches)
            units = [float(np.mean(values)) for values in counted]
            runs_of_units = sum(map(len, counted))
        else:
            units = [value for values in own.values() for value in values]
            missing, runs_of_units = _missing("runs missing", len(units) < planned.runs), len(units)
        found[key] = MethodValues(tuple(units), runs_of_units, planned.searched, planned.constant, missing)
    return found


def _missing(what: Missing, some: bool) -> Missing | None:
    return what if some else None


def intervals_of(question: Question, runs: Runs, values: Mapping[str, MethodValues]) -> dict[str, Interval]:
    """Return mean and 95 % interval of every method with runs.

    Where searches are repeated, they are the unit: mean and interval are over the complete searches, with the variance
    of the comparison (`mean_half_widths`), and n counts them. A method with missing searches has no interval. Else the
    interval is Student's t over runs, and holds for the settings.
    """
    intervals = {
        key: student_t_interval([v for own in runs[key].values() for v in own]) for key in values if key in runs
    }
    if question.unit != "search":
        return intervals
    widths = mean_half_widths({key: values[key] for key in question.compared}, question.step)
    for key, over_runs in intervals.items():
        units = values[key].units
        alone = student_t_interval(units) if units else Interval(over_runs.mean, None, 0)
        half_width = None if values[key].missing else widths.get(key, alone.half_width)
        intervals[key] = Interval(alone.mean, half_width, len(units))
    return intervals


def mean_errors(values: Mapping[str, MethodValues], names: Sequence[str], resolution: float) -> MeanErrors:
    """Errors of the means. Methods that were searched pool their variances, and so do those that were not."""
    floor = max(resolution**2 / 12, np.finfo(float).tiny)
    means = np.array([values[name].mean for name in names])
    squares, degrees = np.full(len(names), floor), np.full(len(names), MOST_DEGREES)
    # A constant method is in a pool of its own kind, and has no error but that of rounding.
    pool = np.array([2 if values[name].constant else int(values[name].searched) for name in names], dtype=np.intp)
    for number in (0, 1):
        own = np.flatnonzero(pool == number)
        if own.size:
            units = [values[names[int(i)]].units for i in own]
            variances = np.array([np.var(of_method, ddof=1) for of_method in units])
            pooled = pool_or_own(means[own], variances, [len(of_method) for of_method in units], resolution)
            squares[own], degrees[own] = np.maximum(pooled.squares, np.finfo(float).tiny), pooled.degrees
    return MeanErrors(means, squares, degrees, pool)


def mean_half_widths(values: Mapping[str, MethodValues], resolution: float = 0.0) -> dict[str, float]:
    """Half widths of the 95 % intervals of means over searches, for the methods with at least two complete searches.

    The variances are those of the comparison: pooled over the methods, or the method's own if that is larger.
    """
    names = [name for name, given in values.items() if not given.constant and not given.missing and given.units[1:]]
    errors = mean_errors(values, names, resolution)
    widths = special.stdtrit(errors.degrees, 0.975) * np.sqrt(errors.squares)
    return dict(zip(names, widths.tolist(), strict=True))
