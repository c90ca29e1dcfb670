"""What tuning buys: the methods' searches beside runs of their default settings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from results.answer.pair_tests import PairDifferences, holm, pairs_of, smallest_detectable
from results.answer.question import ALPHA
from results.answer.typical import mean_errors
from results.answer.values import MethodValues, Pair

_Values = Mapping[str, MethodValues]


def gains_over(
    tuned: _Values, default: _Values, rows: Mapping[str, str], step: float = 0.0, alpha: float = ALPHA
) -> tuple[Pair, ...]:
    """Compare the searches of methods with runs of their default settings, of methods with two of each or more.

    Returns a pair of each method with its row of defaults, the largest gain first. The tests are a family of their own,
    corrected by Holm's method; nothing is said about the margin. The variances are those of the comparison: searches
    pool theirs, and so do runs of defaults. Between the two the degrees of freedom are Satterthwaite's.

    Args:
        rows: The method of each row of defaults, by its key. The defaults may be those of another experiment.
        step: Smallest step of the score.
        alpha: Bound of the probability that any gain is claimed where there is none.
    """
    both = [(method, row) for row, method in rows.items() if _whole(tuned.get(method)) and _whole(default.get(row))]
    if not both:
        return ()
    sides = {f"tuned {method}": tuned[method] for method, _ in both}
    sides |= {f"default {row}": default[row] for _, row in both}
    found = mean_errors(sides, list(sides), step).pairs()
    first, second = pairs_of(len(sides))
    own = np.flatnonzero(second - first == len(both))
    found = PairDifferences(found.difference[own], found.error[own], found.degrees[own])
    columns = {
        "half_width": found.half_width(),
        "degrees": found.degrees,
        "p": found.p,
        "p_better": holm(found.p),
        "smallest": smallest_detectable(found.error, found.degrees, alpha / len(both)),
    }
    pairs = []
    for place, (method, row) in enumerate(both):
        numbers: dict[str, Any] = {key: float(column[place]) for key, column in columns.items()}
        if numbers["p_better"] < alpha:
            numbers["direction"] = "a better" if found.difference[place] > 0 else "b better"
        pairs.append(Pair(method, row, tuned[method], default[row], **numbers))
    return tuple(sorted(pairs, key=lambda pair: -pair.difference))


def _whole(own: MethodValues | None) -> bool:
    return own is not None and not own.missing and len(own.units) > 1
