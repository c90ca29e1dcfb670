"""What two printed numbers show of a claim.

The print alone shows whether a difference is larger than the noise of the runs. If two methods are equal, the printed
difference is t-distributed around 0 with the error s sqrt(1/n_a + 1/n_b), for n_a and n_b runs with the deviation s. A
difference is beyond the noise if it is larger than t times this error. Of equal methods 5 % are, whatever n_a and n_b
are (tests/results/published/test_print_alone.py simulates this).

The deviation s is that of the printed ± of the two values, else that of all ± that papers print for the same dataset,
score and kind of embeddings. Without either there is no verdict. A value without a stated number of runs counts as one
run.

Papers often state neither what a ± is nor how many runs are behind it. It is read in the way with the most noise: as
the standard error of their mean, over the fewest runs that have a ± or over the five that are usual.

Runs of one setting show how well that setting can be trained again. How far another search would have come is no part
of a printed ±, so a difference beyond the noise is one of the printed settings. Beside it stands how much searches may
vary before it is within the noise.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from results.answer.intervals import deviation_of_interval, t_quantile
from results.answer.pair_tests import break_even
from results.published.claims import Claim
from results.published.tables import PublishedColumn, SpreadKind, published_table, published_tables

READINGS = (2, 5)
"""Number of runs behind a ± that states none: the fewest that have one, and the number that is usual."""

PrintVerdict = Literal["within noise", "beyond noise", "no fitting deviation"]


@dataclass(frozen=True)
class Spread:
    """A printed ±, in percentage points.

    Attributes:
        runs: Number of runs behind it; None if the source does not say.
        table: The published table that prints it; empty for one of a file of claims.
    """

    plus_minus: float
    runs: int | None
    kind: SpreadKind
    table: str = ""

    @property
    def stated(self) -> bool:
        """Whether meaning and number of runs are stated."""
        return self.runs is not None and self.kind != "not stated"

    def read(self, unstated: int, kind: SpreadKind = "not stated") -> tuple[float, int]:
        """Return the standard deviation between runs and its degrees of freedom; there must be two runs or more.

        Args:
            unstated: Number of runs if the source does not say.
            kind: What the ± is if the source does not say; "not stated" reads it as the standard error of the mean.
        """
        runs = self.runs or unstated
        read = kind if self.kind == "not stated" else self.kind
        if read == "95 % interval":
            return deviation_of_interval(self.plus_minus, runs), runs - 1
        return self.plus_minus * (math.sqrt(runs) if read == "not stated" else 1), runs - 1


@dataclass(frozen=True)
class PrintAnswer:
    """What the print alone shows about a claim, in percentage points.

    Attributes:
        deviation: Standard deviation between runs, of the reading with the most noise; None if no ± fits.
        noise: Difference that two equal methods exceed in 5 % of cases; None likewise.
        break_even: Deviation between searches at which a difference beyond noise would be within it.
        source: The printed ± that the deviation is from.
        own: Whether these are the ± of the two values.
    """

    verdict: PrintVerdict
    deviation: float | None = None
    noise: float | None = None
    break_even: float | None = None
    source: tuple[Spread, ...] = ()
    own: bool = False


def print_answer(claim: Claim, kind: SpreadKind = "not stated") -> PrintAnswer:
    """Judge a claim by its printed numbers; `kind` says what a ± is that does not say it, as in `Spread.read`."""
    printed = printed_spreads(PublishedColumn(claim.dataset, claim.metric, claim.kind))
    for source, own in ((_own_spreads(claim), True), (printed, False)):
        readings = []
        for unstated in READINGS:
            if (pooled := pooled_spread(source, unstated, kind)) is not None:
                # A value without a ± and a stated number of runs is that of one run.
                assumed = [1 if plus_minus is None else unstated for plus_minus in claim.plus_minus]
                runs_a, runs_b = (stated or runs for stated, runs in zip(claim.runs, assumed, strict=True))
                readings.append((noise_of(*pooled, runs_a, runs_b), *pooled))
        if readings:
            noise, deviation, degrees = max(readings)
            if claim.points <= noise:
                return PrintAnswer("within noise", deviation, noise, source=source, own=own)
            error = noise / t_quantile(0.975, degrees)
            gone = float(break_even(np.array(claim.points), np.array(error), np.array(degrees), 0.05))
            return PrintAnswer("beyond noise", deviation, noise, gone, source, own=own)
    return PrintAnswer("no fitting deviation")


def noise_of(deviation: float, degrees: int, runs_a: int, runs_b: int) -> float:
    """Compute the difference that two equal methods exceed in 5 % of cases: t s sqrt(1/n_a + 1/n_b)."""
    return t_quantile(0.975, degrees) * deviation * math.sqrt(1 / runs_a + 1 / runs_b)


def pooled_spread(
    spreads: Iterable[Spread], unstated: int, kind: SpreadKind = "not stated"
) -> tuple[float, int] | None:
    """Pool the deviations between runs; returns deviation and degrees of freedom, None if no ± says anything."""
    read = [spread.read(unstated, kind) for spread in spreads if spread.runs != 1]
    degrees = sum(own for _, own in read)
    squares = math.fsum(own * deviation**2 for deviation, own in read)
    return (math.sqrt(squares / degrees), degrees) if squares else None


@cache
def printed_spreads(column: PublishedColumn) -> tuple[Spread, ...]:
    """Return the ± that papers print for a dataset, a score and a kind of embeddings, of values that they measured.

    Quoted values are left out: their source is pooled where it is printed, under its own conditions. A number that a
    paper prints twice counts once.
    """
    found: dict[tuple[str, str, float], Spread] = {}
    for table in map(published_table, published_tables()):
        for cell in (row.cells[column] for row in table.rows if column in row.cells):
            if cell.plus_minus is not None and cell.spread is not None and cell.origin.kind == "measured":
                spread = Spread(cell.plus_minus, cell.runs, cell.spread, table.name)
                found.setdefault((table.paper, cell.as_published, cell.plus_minus), spread)
    return tuple(found.values())


def _own_spreads(claim: Claim) -> tuple[Spread, ...]:
    """The ± of the claim's values.

    Empty if only one value has a ±, and its meaning or its number of runs is not stated: that of many values says more.
    """
    spreads = tuple(
        Spread(plus_minus, runs, claim.plus_minus_kind)
        for plus_minus, runs in zip(claim.plus_minus, claim.runs, strict=True)
        if plus_minus is not None and runs != 1
    )
    stated = tuple(spread for spread in spreads if spread.stated)
    return stated or (spreads if len(spreads) > 1 else ())
