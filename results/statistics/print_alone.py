"""What two printed numbers show of a claim, and what runs show of it.

The print alone shows whether a difference is larger than the noise of the runs. If two methods are equal, the printed
difference is t-distributed around 0 with the error s sqrt(1/n_a + 1/n_b), for n_a and n_b runs with the deviation s. A
difference is beyond the noise if it is larger than t times this error. Of equal methods 5 % are, whatever n_a and n_b
are (tests/results/statistics/test_print_alone.py simulates this).

A value without a stated number of runs counts as one run. If it has a ±, it counts as two, the fewest that have one.
A ± without a stated meaning is read as the standard error of the mean. This reading gives the most noise: a standard
deviation or a confidence interval with the same number means less.
"""

import math
from dataclasses import dataclass
from typing import Literal

from results.published.claims_file import Claim, ClaimedValue
from results.spec.experiment_spec import PrimaryScore
from results.statistics.comparison_result import ComparedPair, ComparisonResult
from results.statistics.measured_noise import MeasuredNoise
from results.statistics.pair_tests import t_quantile
from results.statistics.planning import detectable, units_for
from results.statistics.primary_comparison import comparison_on
from results.statistics.published_verdict import deviation_of_interval
from results.store.experiment_results import MeasuredExperiment

PrintVerdict = Literal["within noise", "beyond noise", "no deviation known"]

_POINTS = 100


@dataclass(frozen=True)
class PrintAnswer:
    """What the print alone shows about a claim. Numbers are percentage points.

    Attributes:
        runs_a: Number of runs that a's value counts as; likewise `runs_b`.
        deviation: Standard deviation between runs; None if it is not known, as are the next three.
        degrees: Degrees of freedom of the deviation.
        noise: Difference that two equal methods exceed in 5 % of cases.
        runs_needed: Runs of each method with which a true difference of the claimed size is found with a probability
            of 80 %; also None if more than 1,000.
        measured: The measured setting that the deviation is from; None if it is from the printed ±.
    """

    verdict: PrintVerdict
    runs_a: int
    runs_b: int
    deviation: float | None = None
    degrees: int | None = None
    noise: float | None = None
    runs_needed: int | None = None
    measured: MeasuredNoise | None = None


def print_answer(claim: Claim, measured: MeasuredNoise | None) -> PrintAnswer:
    """Judge a claim by its printed numbers. A printed ± counts before a measured deviation."""
    runs_a, runs_b = fewest_runs(claim.a), fewest_runs(claim.b)
    printed = printed_deviation(claim)
    if printed is not None:
        (deviation, degrees), measured = printed, None
    elif measured is not None:
        deviation, degrees = _POINTS * measured.deviation, measured.degrees
    else:
        return PrintAnswer("no deviation known", runs_a, runs_b)
    noise = noise_of(deviation, degrees, runs_a, runs_b)
    return PrintAnswer(
        "beyond noise" if claim.difference > noise else "within noise",
        runs_a,
        runs_b,
        deviation,
        degrees,
        noise,
        units_for(2, round(claim.difference / deviation, 2)) if deviation else None,
        measured,
    )


def fewest_runs(side: ClaimedValue) -> int:
    """Return the number of runs behind a value; if the source does not say, 2 with a ± and 1 without."""
    return side.runs or (1 if side.plus_minus is None else 2)


def noise_of(deviation: float, degrees: int, runs_a: int, runs_b: int) -> float:
    """Compute the difference that two equal methods exceed in 5 % of cases: t s sqrt(1/n_a + 1/n_b)."""
    return t_quantile(0.975, degrees) * deviation * math.sqrt(1 / runs_a + 1 / runs_b)


def printed_deviation(claim: Claim) -> tuple[float, int] | None:
    """Return the deviation between runs that the ± of the claim gives, pooled over its values.

    It is in percentage points. None if no value has a ±, or if only one has and its meaning or its number of runs is
    not stated.
    """
    sides = (claim.a, claim.b)
    with_spread = [side for side in sides if side.plus_minus is not None]
    stated = [side for side in with_spread if (side.runs or 0) > 1 and claim.spread != "not stated"]
    with_spread = stated or with_spread
    if not stated and len(with_spread) < len(sides):
        return None
    degrees = [fewest_runs(side) - 1 for side in with_spread]
    squares = sum(
        count * _deviation(side, claim) ** 2 for side, count in zip(with_spread, degrees, strict=True) if count
    )
    return (math.sqrt(squares / sum(degrees)), sum(degrees)) if squares else None


def _deviation(side: ClaimedValue, claim: Claim) -> float:
    plus_minus, runs = side.plus_minus or 0.0, fewest_runs(side)
    if claim.spread == "standard deviation":
        return plus_minus
    if claim.spread == "95 % interval" and side.runs is not None:
        return deviation_of_interval(plus_minus, runs)
    return plus_minus * math.sqrt(runs)


ClaimVerdict = Literal["holds", "contradicted", "cannot tell", "not compared", "not run"]
"""`holds`: a is better. `contradicted`: b is better. The size of the difference is another question.

`not compared`: there are runs of both methods, but no experiment compares them in this score.
"""


@dataclass(frozen=True)
class RunsAnswer:
    """What the runs of one experiment show about a claim. Differences are fractions of 1.

    Attributes:
        verdict: The verdict about the direction; never `not compared` or `not run`.
        pair: Method a compared with method b; its differences are a minus b.
        comparison: The experiment's comparison on the claim's score, from which the pair is.
        needed: Searches (or runs) of each method with which a true difference of the claimed size is found with a
            probability of 80 %; None if more than 1,000, or if the deviation is not known.
        claimed: Whether the interval of the difference excludes the claimed size; None without an interval.
    """

    verdict: ClaimVerdict
    pair: ComparedPair
    comparison: ComparisonResult
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
    verdicts: dict[str, ClaimVerdict] = {"a better": "holds", "b better": "contradicted"}
    return RunsAnswer(verdicts.get(pair.direction, "cannot tell"), pair, comparison, needed, pair.claimed_size(claimed))
