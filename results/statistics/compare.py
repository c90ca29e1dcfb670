"""The one comparison of an experiment's methods on one score, with a verdict for every pair that was asked for.

Marks, sentences, tables, exports and claims read the result of `compare_methods`, so that they cannot contradict each
other. People ask whether a method is better, and its result hangs on its search more than on its runs. So the data are
the means of complete searches. Where each method was searched once, the deviation of a search is assumed from a kept
record. Where nothing was searched, the runs are the data, and the verdicts are about the given settings.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from results.spec.search_settings import LOOKS
from results.statistics.comparison import ComparedPair, ComparisonResult, MethodValues, Missing, Unit, Untested
from results.statistics.deviations import WIDENING, SearchDeviation
from results.statistics.pair_tests import (
    MOST_DEGREES,
    SHARE_OF_BETTER,
    MeanErrors,
    Numbers,
    PairDifferences,
    adjusted,
    adjusted_in_one_step,
    family,
    least_factor,
    pool_or_own,
    with_assumed_search,
)

ALPHA = 0.05
MARGIN = 0.005
"""Half a percentage point: methods that differ by less count as equal."""

POWER = 0.8
"""Probability with which the smallest detectable difference is called better."""


def power_words(compare: str) -> str:
    """Write this probability; against a best that the data choose, it is about 70 %."""
    return "about 70 %" if compare == "best" else f"{100 * POWER:g} %"


def compare_methods(
    values: Mapping[str, MethodValues],
    unit: Unit = "search",
    compare: str = "all",
    alpha: float = ALPHA,
    margin: float = MARGIN,
    resolution: float = 0.0,
    assumed: SearchDeviation | None = None,
) -> ComparisonResult:
    """Compare methods.

    The probability that the family makes any wrong claim, "better", "beyond" or "within", is at most `alpha`;
    `make calibrate` measures it, and docs/comparisons.md lists where it does not hold. Only complete methods are
    tested. Methods that are not complete count in the correction.

    Args:
        values: Values by method, in the experiment's order.
        unit: What the values are. With `single search` the deviation of a search is `assumed`.
        compare: `all` pairs, each with the `best`, or each with the method of this name.
        alpha: Bound of the probability of a wrong claim.
        margin: Methods that differ by less count as equal, in the unit of the values.
        resolution: Smallest step of the score.
        assumed: Deviation between the means of single searches. None is not known: there are no verdicts.
    """
    if compare not in ("all", "best", *values):
        raise ValueError(f"compare {compare!r}: use all, best, or one of the methods {', '.join(values)}")
    named = {name: _untested(given, unit, assumed) for name, given in values.items()}
    ordered = _ordered(values, compare)
    tested = [name for name in ordered if named[name] is None]
    if compare != "all" and ordered[:1] != tested[:1]:
        tested = []  # The reference is not complete.
    verdicts: dict[tuple[str, str], dict[str, Any]] = {}
    if len(tested) > 1:
        if unit == "single search" and assumed is not None:
            differences = _of_single_searches(values, tested, assumed, resolution)
        else:
            differences = mean_errors(values, tested, resolution).pairs()
        verdicts = _verdicts(tested, differences, compare, len(values), alpha, margin, one_step=unit == "single search")
    pairs = []
    for a, b in _asked(ordered, compare):
        found = verdicts.get((a, b)) or {"untested": named[a] or named[b]}
        pairs.append(ComparedPair(a, b, values[a], values[b], **found))
    settings = None
    if unit == "single search":
        settings = compare_methods(values, "run", compare, alpha, margin, resolution)
    return ComparisonResult(values, tuple(pairs), compare, unit, alpha, margin, assumed, settings)


def compare_at_looks(
    values: Mapping[str, MethodValues],
    compare: str = "all",
    alpha: float = ALPHA,
    margin: float = MARGIN,
    resolution: float = 0.0,
    looks: Sequence[int] = LOOKS,
) -> ComparisonResult:
    """Compare methods by their searches after each of the planned looks that was reached; claims stay.

    The family is tested at each look l at the level alpha l / sum(L). So the probability of any wrong claim at any look
    is at most `alpha`, whatever ends the run. The p values are adjusted for the looks too: the smallest over the looks
    of p times alpha over the level of its look. The other numbers are those of the last look.
    """
    reached = max([looks[0], *(len(own.units) for own in values.values() if not own.constant)])
    results = []
    for look in (one for one in looks if one <= reached):
        level = alpha * look / sum(looks)
        early = {name: _first_searches(own, look) for name, own in values.items()}
        results.append((level, compare_methods(early, "search", compare, level, margin, resolution)))
    level, last = results[-1]
    pairs = []
    for pair in last.pairs:
        seen = [(level, one) for level, result in results if (one := result.pair(pair.a, pair.b)) and one.p is not None]
        adjusted_p: dict[str, Any] = {
            name: min(1.0, *(getattr(one, name) * alpha / level for level, one in seen))
            for name in ("p_better", "p_beyond", "p_equal")
            if seen
        }
        for answer in ("direction", "size"):
            claims = (getattr(one, answer) for _, one in seen)
            adjusted_p[answer] = next((claim for claim in claims if claim != "cannot tell"), "cannot tell")
        pairs.append(replace(pair, **adjusted_p) if pair.p is not None else pair)
    return replace(last, values=values, pairs=tuple(pairs), alpha=alpha, look_level=level)


def _first_searches(own: MethodValues, count: int) -> MethodValues:
    """The first searches of a method, which is complete if it has them; a constant value stays."""
    if own.constant:
        return own
    runs = own.runs * min(count, len(own.units)) // max(1, len(own.units))
    missing: Missing | None = "searches missing" if len(own.units) < count else None
    return replace(own, units=own.units[:count], runs=runs, missing=missing)


def _ordered(values: Mapping[str, MethodValues], compare: str) -> list[str]:
    """The methods with values, those that others are compared with first."""
    names = [name for name, given in values.items() if given.units]
    if compare == "best":
        return sorted(names, key=lambda name: (math.isnan(values[name].mean), -values[name].mean))
    return sorted(names, key=lambda name: name != compare)


def _asked(ordered: Sequence[str], compare: str) -> Iterator[tuple[str, str]]:
    firsts = ordered if compare == "all" else ordered[:1] if compare in ("best", *ordered[:1]) else ()
    for number, a in enumerate(firsts):
        for b in ordered[number + 1 :]:
            yield a, b


def _untested(given: MethodValues, unit: Unit, assumed: SearchDeviation | None) -> Untested | None:
    if given.missing or not all(map(math.isfinite, given.units)):
        return given.missing or "runs missing"
    if unit == "single search" and given.searched and assumed is None:
        return "search not known"
    return None if given.constant or len(given.units) > 1 else "single runs"


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


def _of_single_searches(
    values: Mapping[str, MethodValues], names: Sequence[str], assumed: SearchDeviation, resolution: float
) -> PairDifferences:
    given = [values[name] for name in names]
    varied = [0.0 if one.constant else float(np.var(one.units, ddof=1)) for one in given]
    floor = max(resolution**2 / 12, np.finfo(float).tiny)
    return with_assumed_search(
        np.array([one.mean for one in given]),
        np.maximum(varied, floor),
        np.array([float(len(one.units)) for one in given]),
        np.array([WIDENING * assumed.deviation if one.searched else 0.0 for one in given]),
        assumed.degrees,
    )


def mean_half_widths(values: Mapping[str, MethodValues], resolution: float = 0.0) -> dict[str, float]:
    """Half widths of the 95 % intervals of means over searches, for the methods with at least two complete searches.

    The variances are those of the comparison: pooled over the methods, or the method's own if that is larger.
    """
    names = [name for name, given in values.items() if not given.constant and not given.missing and given.units[1:]]
    errors = mean_errors(values, names, resolution)
    widths = special.stdtrit(errors.degrees, 0.975) * np.sqrt(errors.squares)
    return dict(zip(names, widths.tolist(), strict=True))


def _verdicts(
    names: Sequence[str],
    differences: PairDifferences,
    compare: str,
    methods: int,
    alpha: float,
    margin: float,
    *,
    one_step: bool,
) -> dict[tuple[str, str], dict[str, Any]]:
    """The numbers and verdicts of the tested pairs, by the names of both."""
    asked = list(_asked(names, compare))
    # Of all pairs, those with the first method, which is the reference, come first.
    error, degrees = differences.error[: len(asked)], differences.degrees[: len(asked)]
    tested = PairDifferences(differences.difference[: len(asked)], error, degrees)
    adjust = adjusted_in_one_step if one_step else adjusted
    adjust_equal = adjusted_in_one_step if compare == "best" else adjust
    better = np.minimum(adjust(tested.p, compare, methods) / SHARE_OF_BETTER, 1)
    beyond = np.minimum(adjust(tested.p_beyond(margin), compare, methods) / SHARE_OF_BETTER, 1)
    columns = {
        "half_width": tested.half_width(),
        "degrees": degrees,
        "p": tested.p,
        "p_better": better,
        # The data choose the direction, so a one-sided test alone would err twice as often.
        "p_beyond": np.maximum(better, beyond),
        "p_equal": np.minimum(adjust_equal(tested.p_equal(margin), compare, methods) / (1 - SHARE_OF_BETTER), 1),
        "smallest": smallest_detectable(error, degrees, compare, methods, alpha),
    }
    verdicts: dict[tuple[str, str], dict[str, Any]] = {}
    for index, names_of_pair in enumerate(asked):
        numbers: dict[str, Any] = {key: float(column[index]) for key, column in columns.items()}
        if numbers["p_better"] < alpha:
            numbers["direction"] = "a better" if tested.difference[index] > 0 else "b better"
        if min(numbers["p_beyond"], numbers["p_equal"]) < alpha:
            numbers["size"] = "beyond" if numbers["p_beyond"] < alpha else "within"
        verdicts[names_of_pair] = numbers
    return verdicts


def smallest_detectable(error: Numbers, degrees: Numbers, compare: str, methods: int, alpha: float = ALPHA) -> Numbers:
    """Compute the smallest true difference that would be called better with a probability of 80 % (`power_words`).

    It is (t(1 - level / 2) + t(0.8)) times the standard error. The level is corrected as for the smallest p value.
    """
    level = corrected_level(compare, methods, alpha)
    return np.asarray((special.stdtrit(degrees, 1 - level / 2) + special.stdtrit(degrees, POWER)) * error)


def corrected_level(compare: str, methods: int, alpha: float = ALPHA) -> float:
    """Return the level of "better" for the smallest p value of a family."""
    factor = least_factor(methods) if compare == "best" else family(compare, methods)
    return SHARE_OF_BETTER * alpha / factor
