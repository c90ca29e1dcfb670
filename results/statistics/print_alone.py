"""What two printed numbers show of a claim, and what runs show of it.

The print alone shows whether a difference is larger than the noise of the runs. If two methods are equal, the printed
difference is t-distributed around 0 with the error s sqrt(1/n_a + 1/n_b), for n_a and n_b runs with the deviation s. A
difference is beyond the noise if it is larger than t times this error. Of equal methods 5 % are, whatever n_a and n_b
are (tests/results/statistics/test_print_alone.py simulates this).

The deviation s is, in this order, that of the printed ± of the two values, that of all ± that papers print for the same
dataset, score and kind of embeddings, or one that was measured on the same whole dataset. Deviations of parts of a
dataset and of other datasets do not fit, so they give no verdict. A value without a stated number of runs counts as one
run. If a ± does not state its meaning or its runs, it is read in several ways (`results.published.spreads`), and the
verdict says if they disagree.

Runs of one setting show how well that setting can be trained again. How far another search would have come is no part
of a printed ±, so a difference beyond the noise is one of the printed settings.
"""

import math
from dataclasses import dataclass
from typing import Literal

from results.published.claims_file import Claim, ClaimedValue
from results.published.spreads import READINGS, Reading, Spread, pooled_spread, printed_spreads
from results.published.tables import PublishedColumn
from results.spec.experiment_spec import PrimaryScore
from results.statistics.comparison_result import ComparedPair, ComparisonResult
from results.statistics.measured_noise import MeasuredNoise
from results.statistics.pair_tests import t_quantile
from results.statistics.planning import detectable, units_for
from results.statistics.primary_comparison import comparison_on
from results.store.experiment_results import MeasuredExperiment

PrintVerdict = Literal["within noise", "within to beyond", "beyond noise", "no fitting deviation"]
"""`within to beyond`: the verdict depends on how a ± is read whose meaning or number of runs is not stated."""

DeviationSource = tuple[Spread, ...] | MeasuredNoise
"""Where a deviation is from: printed ±, or measured runs."""

_POINTS = 100


@dataclass(frozen=True)
class PrintNoise:
    """The noise of a printed difference under one reading of what is not stated, in percentage points.

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

    def runs_needed(self, difference: float) -> int | None:
        """Runs of each method that find a true difference with a probability of 80 %; None above `MOST_UNITS`."""
        return units_for(2, round(difference / self.deviation, 2))


@dataclass(frozen=True)
class PrintAnswer:
    """What the print alone shows about a claim.

    Attributes:
        least: The least noise of all readings; None without a fitting deviation. Likewise `most`.
        source: Where the deviation is from; None without one.
        own: Whether it is from the ± of the two values.
    """

    verdict: PrintVerdict
    least: PrintNoise | None = None
    most: PrintNoise | None = None
    source: DeviationSource | None = None
    own: bool = False

    @property
    def noises(self) -> tuple[PrintNoise, ...]:
        """The least and the most noise; one if all readings agree, none without a fitting deviation."""
        return tuple(dict.fromkeys(noise for noise in (self.least, self.most) if noise is not None))


def print_answer(claim: Claim, measured: MeasuredNoise | None) -> PrintAnswer:
    """Judge a claim by its printed numbers.

    Args:
        measured: The deviation of runs on the claim's whole dataset, if there is one.
    """
    own = own_spreads(claim)
    printed = printed_spreads(PublishedColumn(claim.dataset, claim.metric, claim.kind))
    for source in (own, printed, measured):
        noises = [noise for reading in READINGS if (noise := _noise(claim, source, reading))]
        if not noises:
            continue
        least, *_, most = sorted(noises, key=lambda noise: noise.noise)
        beyond = {claim.difference > noise.noise for noise in (least, most)}
        verdict: PrintVerdict = "within to beyond" if len(beyond) > 1 else "within noise"
        verdict = "beyond noise" if beyond == {True} else verdict
        return PrintAnswer(verdict, least, most, source, own=source is own)
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


@dataclass(frozen=True)
class RunsAnswer:
    """What the runs of one experiment show about a claim. Differences are fractions of 1.

    Attributes:
        pair: Method a compared with method b; its differences are a minus b.
        comparison: The experiment's comparison on the claim's score, from which the pair is.
        score: The score of this comparison.
        needed: Searches (or runs) of each method with which a true difference of the claimed size is found with a
            probability of 80 %; None if more than 1,000, or if the deviation is not known.
        claimed: Whether the interval of the difference excludes the claimed size; None without an interval.
    """

    pair: ComparedPair
    comparison: ComparisonResult
    score: PrimaryScore
    needed: int | None
    claimed: Literal["compatible", "excluded"] | None


def runs_answer(measured: MeasuredExperiment, score: PrimaryScore, a: str, b: str, claimed: float) -> RunsAnswer | None:
    """Judge a claimed difference, a fraction of 1, by an experiment's comparison on the claim's score.

    None if the experiment has no runs of both, or if its file asks for other pairs.
    """
    comparison = comparison_on(measured, score)
    pair = comparison.pair(a, b) if comparison else None
    if comparison is None or pair is None:
        return None
    sees = detectable(measured.summary.experiment, len(comparison.values), score, measured)
    needed = (
        None if sees.deviation is None else units_for(len(comparison.values), claimed / sees.deviation, score.compare)
    )
    return RunsAnswer(pair, comparison, score, needed, pair.claimed_size(claimed))
