"""What a printed ± says about the deviation between runs, and which papers print one for a dataset and a score.

Papers often state neither what a ± is nor how many runs are behind it. It can be the standard deviation between runs or
the standard error of their mean, over the fewest runs that have a ± or over the five that are usual. Of these readings
the one with the most noise counts (`results.statistics.print_alone`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product

from results.published.rows import SpreadKind, precision_of, row_origin
from results.published.tables import PublishedColumn, published_table, published_tables
from results.statistics.published_verdict import deviation_of_interval

FEWEST_RUNS, USUAL_RUNS = 2, 5
"""Number of runs behind a ± that states none: the fewest that have one, and the number that is usual."""


@dataclass(frozen=True)
class Reading:
    """A way to read what is not stated.

    Attributes:
        standard_error: Whether a ± of unstated kind is taken for the standard error of the mean, else for the
            standard deviation between runs.
        runs: Number of runs behind a ± that states none.
    """

    standard_error: bool
    runs: int


READINGS = tuple(Reading(*way) for way in product((False, True), (FEWEST_RUNS, USUAL_RUNS)))


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
        """Whether meaning and number of runs are stated, so that all readings agree."""
        return self.runs is not None and self.kind != "not stated"

    def read(self, reading: Reading) -> tuple[float, int]:
        """Return the standard deviation between runs and its degrees of freedom; there must be two runs or more."""
        runs = self.runs or reading.runs
        if self.kind == "95 % interval":
            return deviation_of_interval(self.plus_minus, runs), runs - 1
        error = self.kind == "not stated" and reading.standard_error
        return self.plus_minus * (math.sqrt(runs) if error else 1), runs - 1


def pooled_spread(spreads: Iterable[Spread], reading: Reading) -> tuple[float, int] | None:
    """Pool the deviations between runs; returns deviation and degrees of freedom, None if no ± says anything."""
    read = [spread.read(reading) for spread in spreads if spread.runs != 1]
    degrees = sum(own for _, own in read)
    squares = sum(own * deviation**2 for deviation, own in read)
    return (math.sqrt(squares / degrees), degrees) if squares else None


@cache
def printed_spreads(column: PublishedColumn) -> tuple[Spread, ...]:
    """Return the ± that papers print for a dataset, a score and a kind of embeddings, of values that they measured.

    Quoted values are left out: their source is pooled where it is printed, under its own conditions. A number that a
    paper prints twice counts once.
    """
    found: dict[tuple[str, str, float], Spread] = {}
    for name in published_tables():
        table = published_table(name)
        for row in table.rows:
            cell = row.cells.get(column)
            if cell is None or cell.plus_minus is None:
                continue
            origin = row_origin(name, row, column.dataset)
            precision = precision_of(cell, origin)
            if origin.kind == "measured" and precision.spread is not None:
                spread = Spread(cell.plus_minus, precision.runs, precision.spread, name)
                found.setdefault((table.paper, cell.as_published, cell.plus_minus), spread)
    return tuple(found.values())
