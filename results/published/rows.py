"""Who measured a published row, and how precisely: the paper that prints it, or another one that it is quoted from.

A run of ours can reproduce a row only if the paper measured that row itself. A row that was copied from another paper
was made under that paper's conditions. `rows.csv` says which is which, with the evidence; it was written from the
papers and from the authors' code, independently of the experiment files of this suite.

`settings.csv` has the numbers of runs behind the values, with their sources, and `spreads.csv` says for each table what
its ± is. Papers often state neither. Then a value counts as a single run, which gives the widest interval.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from results.published.tables import PublishedCell, PublishedRow, read_published
from results.statistics.intervals import PublishedMean, deviation_of_interval

_KEY = ("table", "label", "trunk", "dimensions", "setting")
_ORIGIN = ("quoted_from", "evidence", "conditions", "printed_row", "our_reading", "not_determined")

RowKind = Literal["measured", "quoted", "unclear"]
"""Measured by the paper that prints it, quoted from another paper, or not to be determined from text and code."""


@dataclass(frozen=True)
class RowOrigin:
    """Where the numbers of a published row come from.

    Attributes:
        quoted_from: The paper that measured a quoted row; empty for a measured row, and where nobody can tell.
        as_published: The row's name as the paper spells it; `settings.csv` uses it.
        our_reading: The setting that we run where no source states the row's own; empty for other rows.
        not_determined: What text and code do not tell, so that the row cannot be run; empty for other rows.
    """

    kind: RowKind
    quoted_from: str
    evidence: str
    conditions: str
    as_published: str
    our_reading: str = ""
    not_determined: str = ""


def row_origin(table: str, row: PublishedRow, dataset: str) -> RowOrigin:
    """Where a row's numbers on one dataset come from; a row may be quoted on one and unclear on another."""
    size = "" if row.dimensions is None else str(row.dimensions)
    return _origins()[(table, row.label, row.trunk, size, row.setting, dataset)]


@cache
def _origins() -> dict[tuple[str, ...], RowOrigin]:
    origins: dict[tuple[str, ...], RowOrigin] = {}
    for line in read_published("rows").to_dict("records"):
        origin = RowOrigin(line["kind"], *(line[name] for name in _ORIGIN))
        for dataset in line["datasets"].split(";"):
            origins[(*(str(line[name]) for name in _KEY), dataset)] = origin
    return origins


SpreadKind = Literal["95 % interval", "standard deviation", "not stated"]
"""Meaning of a ±: half width of a Student-t interval of the mean, standard deviation between runs, or unknown."""


@dataclass(frozen=True)
class PublishedPrecision:
    """What is known about the runs behind a published value.

    Attributes:
        runs: Number of runs; None if the paper does not say.
        spread: Meaning of the value's ±; None without a ±.
    """

    runs: int | None
    spread: SpreadKind | None

    @property
    def deviation_is_known(self) -> bool:
        """Whether the ± gives the standard deviation between the runs."""
        return self.runs is not None and self.runs > 1 and self.spread in ("95 % interval", "standard deviation")


def precision_of(cell: PublishedCell, origin: RowOrigin) -> PublishedPrecision:
    """Return what is known about the runs behind a published value."""
    spreads = read_published("spreads").set_index("table")["kind"]
    spread = None if cell.plus_minus is None else spreads[cell.table_name]
    return PublishedPrecision(_runs(cell.table_name, cell.dataset, origin.as_published), spread)


def published_mean(cell: PublishedCell, origin: RowOrigin) -> PublishedMean | None:
    """Return a published value as a measurement, in the units of our records; None for a dash."""
    value, precision = cell.measure, precision_of(cell, origin)
    if value is None:
        return None
    if not precision.deviation_is_known or cell.plus_minus is None or precision.runs is None:
        return PublishedMean(value, cell.rounding, precision.runs or 1)
    spread = cell.plus_minus * cell.unit
    if precision.spread == "95 % interval":
        spread = deviation_of_interval(spread, precision.runs)
    return PublishedMean(value, cell.rounding, precision.runs, spread)


@cache
def _runs(table: str, dataset: str, row: str) -> int | None:
    lines = read_published("settings")
    lines = lines[(lines["table"] == table) & (lines["setting"] == "runs")]
    lines = lines[lines["dataset"].isin([dataset, "*"]) & lines["row"].isin([row, "*"])]
    # An inferred number is the audit's guess: the paper states none and its code fixes one seed.
    lines = lines[lines["certainty"] != "inferred"]
    # `4 fold models; repetitions cannot be determined` states no number of runs.
    counts = {match[1] for value in lines["value"] if (match := re.fullmatch(r"(\d+)( reproductions of .*)?", value))}
    return int(counts.pop()) if len(counts) == 1 else None
