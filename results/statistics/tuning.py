"""What tuning buys: the methods' searches beside runs of their default settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from results.statistics.compare import mean_errors
from results.statistics.comparison import MethodValues
from results.statistics.pair_tests import holm, pairs_of


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


def gains(
    tuned: Mapping[str, Sequence[float]], default: Mapping[str, Sequence[float]], resolution: float = 0.0
) -> list[Gain]:
    """Compute the gains of methods from the means of their searches and the runs of their defaults, two each or more.

    The variances are those of the comparison: searches pool theirs, and so do runs of defaults, or a method takes its
    own if that is larger. Between the two the degrees of freedom are Satterthwaite's.
    """
    values = {f"tuned {key}": MethodValues(tuple(own), len(own)) for key, own in tuned.items()}
    values |= {f"default {key}": MethodValues(tuple(default[key]), len(default[key]), searched=False) for key in tuned}
    pairs = mean_errors(values, list(values), resolution).pairs()
    first, second = pairs_of(len(values))
    own = np.flatnonzero(second - first == len(tuned))
    adjusted, half_widths = holm(pairs.p[own]), pairs.half_width()[own]
    return [
        Gain(
            key,
            float(pairs.difference[own[place]]),
            float(half_widths[place]),
            float(adjusted[place]),
            sum(one < float(np.mean(default[key])) for one in units),
            len(units),
        )
        for place, (key, units) in enumerate(tuned.items())
    ]
