"""How precisely a published value was measured: the number of runs behind it, and the meaning of its ±.

`settings.csv` has the numbers of runs, with their sources. `spreads.csv` says for each table what its ± is. Papers
often state neither. Then the value counts as a single run, which gives the widest interval, and the table says so.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from results.published.rows import RowOrigin
from results.published.tables import PublishedCell, read_published
from results.statistics.published_verdict import PublishedMean, deviation_of_interval

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
    spread = None if cell.plus_minus is None else _spreads()[cell.table_name]
    return PublishedPrecision(_runs(cell.table_name, cell.dataset, origin.as_published), spread)


def published_mean(cell: PublishedCell, origin: RowOrigin) -> PublishedMean | None:
    """Return a published value as a measurement, in the units of our records.

    None for a dash.
    """
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
def _spreads() -> dict[str, SpreadKind]:
    frame = read_published("spreads")
    return dict(zip(frame["table"], frame["kind"], strict=True))


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
