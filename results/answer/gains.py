"""What tuning buys: the methods' searches beside runs of their default settings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from results.answer.pair_tests import holm, pairs_of
from results.answer.typical import mean_errors
from results.answer.values import Answer, MethodValues


@dataclass(frozen=True)
class Gain:
    """What a method's search gained over its default setting, in the unit of the values.

    Attributes:
        gain: Mean over searches minus mean over runs of the default.
        half_width: Half the width of its 95 % interval, which is not corrected for other methods.
        p: Two-sided p value of no gain, adjusted by Holm's method for all methods.
        below: Number of searches whose setting found is below the mean of the default.
    """

    method: str
    gain: float
    half_width: float
    p: float
    below: int
    searches: int


def gains_over(tuned: Answer, default: Answer, rows: Mapping[str, str]) -> list[Gain]:
    """Return what searches gained over runs of default settings, of methods with two of each or more.

    The defaults may be those of another experiment. `rows` has the method of each row of defaults, by its key.
    """
    own, theirs = tuned.values, default.values
    both = {method: (own[method], theirs[row]) for row, method in rows.items() if method in own}
    whole = {key: pair for key, pair in both.items() if not any(one.missing or len(one.units) < 2 for one in pair)}
    return gains(whole, tuned.question.step) if whole else []


def gains(pairs: Mapping[str, tuple[MethodValues, MethodValues]], step: float = 0.0) -> list[Gain]:
    """Compute the gains of methods from their searches and the runs of their defaults, two each or more.

    The variances are those of the comparison: searches pool theirs, and so do runs of defaults, or a method takes its
    own if that is larger. Between the two the degrees of freedom are Satterthwaite's.
    """
    values = {f"tuned {key}": _as(tuned, searched=True) for key, (tuned, _) in pairs.items()}
    values |= {f"default {key}": _as(default, searched=False) for key, (_, default) in pairs.items()}
    differences = mean_errors(values, list(values), step).pairs()
    first, second = pairs_of(len(values))
    own = np.flatnonzero(second - first == len(pairs))
    adjusted, half_widths = holm(differences.p[own]), differences.half_width()[own]
    return [
        Gain(
            key,
            float(differences.difference[own[place]]),
            float(half_widths[place]),
            float(adjusted[place]),
            sum(one < default.mean for one in tuned.units),
            len(tuned.units),
        )
        for place, (key, (tuned, default)) in enumerate(pairs.items())
    ]


def _as(own: MethodValues, *, searched: bool) -> MethodValues:
    return replace(own, planned=replace(own.planned, searched=searched))
