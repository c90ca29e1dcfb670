"""What runs show about the claim that one method is better than another.

The verdict is read from the one comparison of the experiment (`method_comparison`), so that it agrees with the
experiment's own tables. It is about the direction; the claimed size is compared with the interval of the difference.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from results.statistics.method_comparison import ComparedPair, RunValues, compare_methods
from results.statistics.planning import run_deviation, runs_for

ClaimVerdict = Literal["holds", "contradicted", "cannot tell", "not run"]
"""`holds`: a is better. `contradicted`: b is better, or the two are equal and the claimed difference is larger."""


@dataclass(frozen=True)
class RunsAnswer:
    """What the runs of one experiment show about a claim. Differences are fractions of 1.

    Attributes:
        verdict: The verdict; never `not run`.
        pair: Method a compared with method b; its differences are a minus b.
        methods: Number of methods of the comparison, for whose pairs the verdict is corrected.
        runs_needed: Runs of each method with which a true difference of the claimed size is found with a probability
            of 80 %; None if more than 1,000, or if the deviation is not known.
        claimed: Whether the claimed difference lies in the interval of the difference, or where the interval lies; None
            without an interval.
    """

    verdict: ClaimVerdict
    pair: ComparedPair
    methods: int
    runs_needed: int | None
    claimed: Literal["inside", "smaller than claimed", "larger than claimed"] | None


def runs_answer(
    methods: Mapping[str, RunValues], a: str, b: str, claimed: float, constant: Collection[str] = ()
) -> RunsAnswer:
    """Judge a claim by runs.

    `methods` has the values of all methods of the experiment under equal conditions, fractions of 1. Methods in
    `constant` have one run that stands for all.
    """
    # The pair's own methods come first, so that its difference is a minus b.
    ordered = {name: methods[name] for name in dict.fromkeys((a, b, *methods))}
    result = compare_methods(ordered, constant=constant)
    pair = result.pair(a, b)
    deviation = run_deviation(ordered)
    return RunsAnswer(
        _verdict(pair, claimed, result.margin),
        pair,
        len(ordered),
        runs_for(len(ordered), round(claimed / deviation, 2)) if deviation else None,
        _claimed_size(pair, claimed),
    )


def _verdict(pair: ComparedPair, claimed: float, margin: float) -> ClaimVerdict:
    if pair.verdict == "a better":
        return "holds"
    if pair.verdict == "b better" or (pair.verdict == "equal" and claimed > margin):
        return "contradicted"
    return "cannot tell"


def _claimed_size(
    pair: ComparedPair, claimed: float
) -> Literal["inside", "smaller than claimed", "larger than claimed"] | None:
    if pair.low is None or pair.high is None:
        return None
    if pair.high < claimed:
        return "smaller than claimed"
    return "larger than claimed" if pair.low > claimed else "inside"
