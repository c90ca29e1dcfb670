"""What two printed numbers show of a claim.

The print alone shows whether a difference is larger than the noise of the runs. If two methods are equal, the printed
difference is t-distributed around 0 with the error s sqrt(1/n_a + 1/n_b), for n_a and n_b runs with the deviation s. A
difference is beyond the noise if it is larger than t times this error. Of equal methods 5 % are, whatever n_a and n_b
are (tests/results/statistics/test_print_alone.py simulates this).

The deviation s is, in this order, that of the printed ± of the two values, that of all ± that papers print for the same
dataset, score and kind of embeddings, or one that was measured on the same whole dataset. Deviations of parts of a
dataset and of other datasets do not fit, so they give no verdict. A value without a stated number of runs counts as one
run. A ± that does not state its meaning or its runs is read in the way that gives the most noise
(`results.published.spreads`).

Runs of one setting show how well that setting can be trained again. How far another search would have come is no part
of a printed ±, so a difference beyond the noise is one of the printed settings.
"""

import math
from dataclasses import dataclass
from typing import Literal

from results.published.claims_file import Claim, ClaimedValue
from results.published.spreads import READINGS, Reading, Spread, pooled_spread, printed_spreads
from results.published.tables import PublishedColumn
from results.statistics.measured_noise import MeasuredNoise
from results.statistics.pair_tests import t_quantile

PrintVerdict = Literal["within noise", "beyond noise", "no fitting deviation"]

DeviationSource = tuple[Spread, ...] | MeasuredNoise
"""Where a deviation is from: printed ±, or measured runs."""

_POINTS = 100


@dataclass(frozen=True)
class PrintNoise:
    """The noise of a printed difference, in percentage points.

    Attributes:
        deviation: Standard deviation between runs.
        degrees: Its degrees of freedom.
        runs_a: Number of runs that a's value counts as; likewise `runs_b`.
    """

    deviation: float
    degrees: int
    runs_a: int
    runs_b: int

    @property
    def noise(self) -> float:
        """Difference that two equal methods exceed in 5 % of cases."""
        return noise_of(self.deviation, self.degrees, self.runs_a, self.runs_b)


@dataclass(frozen=True)
class PrintAnswer:
    """What the print alone shows about a claim.

    Attributes:
        noise: The noise, the most of all readings; None without a fitting deviation.
        source: Where the deviation is from; None without one.
        own: Whether it is from the ± of the two values.
    """

    verdict: PrintVerdict
    noise: PrintNoise | None = None
    source: DeviationSource | None = None
    own: bool = False


def print_answer(claim: Claim, measured: MeasuredNoise | None) -> PrintAnswer:
    """Judge a claim by its printed numbers.

    Args:
        measured: The deviation of runs on the claim's whole dataset, if there is one.
    """
    own = own_spreads(claim)
    printed = printed_spreads(PublishedColumn(claim.dataset, claim.metric, claim.kind))
    for source in (own, printed, measured):
        noises = [noise for reading in READINGS if (noise := _noise(claim, source, reading))]
        if noises:
            most = max(noises, key=lambda noise: noise.noise)
            verdict: PrintVerdict = "beyond noise" if claim.difference > most.noise else "within noise"
            return PrintAnswer(verdict, most, source, own=source is own)
    return PrintAnswer("no fitting deviation")


def own_spreads(claim: Claim) -> tuple[Spread, ...]:
    """Return the ± of the claim's values.

    Empty if only one value has a ±, and its meaning or its number of runs is not stated: that of many values says more.
    """
    spreads = tuple(
        Spread(side.plus_minus, side.runs, claim.spread)
        for side in (claim.a, claim.b)
        if side.plus_minus is not None and side.runs != 1
    )
    stated = tuple(spread for spread in spreads if spread.stated)
    return stated or (spreads if len(spreads) > 1 else ())


def noise_of(deviation: float, degrees: int, runs_a: int, runs_b: int) -> float:
    """Compute the difference that two equal methods exceed in 5 % of cases: t s sqrt(1/n_a + 1/n_b)."""
    return t_quantile(0.975, degrees) * deviation * math.sqrt(1 / runs_a + 1 / runs_b)


def _noise(claim: Claim, source: DeviationSource | None, reading: Reading) -> PrintNoise | None:
    if isinstance(source, MeasuredNoise):
        found: tuple[float, int] | None = (_POINTS * source.deviation, source.degrees)
    else:
        found = pooled_spread(source or (), reading)
    return None if found is None else PrintNoise(*found, _runs(claim.a, reading), _runs(claim.b, reading))


def _runs(side: ClaimedValue, reading: Reading) -> int:
    """Number of runs behind a value. Without a ± and a stated number it is one."""
    return side.runs or (1 if side.plus_minus is None else reading.runs)
