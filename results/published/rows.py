"""Who measured a published row: the paper that prints it, or another paper that it is quoted from.

A run of ours can reproduce a row only if the paper measured that row itself. A row that was copied from another paper
was made under that paper's conditions. `rows.csv` says which is which, with the evidence; it was written from the
papers and from the authors' code, independently of the experiment files of this suite.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from results.published.tables import PublishedRow, read_published

_KEY = ("table", "label", "trunk", "dimensions", "setting")

RowKind = Literal["measured", "quoted", "unclear"]
"""Measured by the paper that prints it, quoted from another paper, or not to be determined from text and code."""


@dataclass(frozen=True)
class RowOrigin:
    """Where the numbers of a published row come from.

    Attributes:
        kind: Whether the paper measured the row itself.
        quoted_from: The paper that measured a quoted row; empty for a measured row, and where nobody can tell.
        evidence: What shows it.
        conditions: The conditions that the row was measured under, as far as they are known.
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
    """Where the numbers of a row on one dataset come from.

    A row may be quoted on one dataset and unclear on another (Proxy-ISA, Table 2).
    """
    size = "" if row.dimensions is None else str(row.dimensions)
    return _origins()[(table, row.label, row.trunk, size, row.setting, dataset)]


@cache
def _origins() -> dict[tuple[str, ...], RowOrigin]:
    origins: dict[tuple[str, ...], RowOrigin] = {}
    for line in read_published("rows").to_dict("records"):
        origin = RowOrigin(
            line["kind"],
            line["quoted_from"],
            line["evidence"],
            line["conditions"],
            as_published=line["printed_row"],
            our_reading=line["our_reading"],
            not_determined=line["not_determined"],
        )
        for dataset in line["datasets"].split(";"):
            origins[(*(str(line[name]) for name in _KEY), dataset)] = origin
    return origins
