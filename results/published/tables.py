"""The numbers that the papers and MLRC published, as frozen values, from the CSV files in results/published/.

`cells.csv` holds the numbers, each with its table, row and column, the key of the row's method in this suite, the
meaning of its ± and the number of runs behind it; `tables.csv` holds the tables' titles and papers.

`rows.csv` says who measured a row, with the evidence. A run of ours can reproduce a row only if the paper measured it
itself; a row that was copied from another paper was made under that paper's conditions. It was written from the papers
and from the authors' code, independently of the experiment files of this suite. The evidence for runs and ± is in
`settings.csv` and `spreads.csv`. Papers often state neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

import pandas as pd

from results.answer.intervals import PublishedMean, deviation_of_interval
from results.spec.mlrc_constants import is_in_percent

Kind = Literal["separated", "concatenated", "single"]

DATASETS = {
    **dict.fromkeys(("CUB", "CUB200", "CUB-200-2011", "CUB200-2011"), "cub200"),
    **dict.fromkeys(("Cars196", "Cars-196", "CARS196"), "cars196"),
    "SOP": "sop",
    **dict.fromkeys(("In-Shop", "In-shop"), "inshop"),
}
"""Our datasets' keys by their names in the papers."""


class PublishedColumn(NamedTuple):
    """A column: our key of the dataset, our name of the metric, and which of MLRC's two embeddings, if any."""

    dataset: str
    metric: str
    kind: Kind


SpreadKind = Literal["95 % interval", "standard deviation", "not stated"]
"""Meaning of a ±: half width of a Student-t interval of the mean, standard deviation between runs, or unknown."""


@dataclass(frozen=True)
class RowOrigin:
    """Where the numbers of a published row on one dataset come from, with the evidence.

    Attributes:
        kind: Measured by the paper that prints it, quoted from another paper, or not to be determined.
        quoted_from: The paper that measured a quoted row; empty for a measured row, and where nobody can tell.
        printed_row: The row's name as the paper spells it; `settings.csv` uses it.
        our_reading: The setting that we run where no source states the row's own; empty for other rows.
        not_determined: What text and code do not tell, so that the row cannot be run; empty for other rows.
        pooling: The pooling of its trunk, where rows of one table differ in it; else empty.
    """

    kind: Literal["measured", "quoted", "unclear"]
    quoted_from: str
    evidence: str
    conditions: str
    printed_row: str
    our_reading: str
    not_determined: str
    pooling: str = ""


@dataclass(frozen=True)
class PublishedCell:
    """One published number.

    Attributes:
        dimensions: Of what was tested (MLRC's concatenated embeddings have 512); None where the paper does not say.
        as_published: The number with the paper's digits; empty for a dash.
        plus_minus: The number behind ±, in the unit of `value`.
        spread: What it is; None without one.
        runs: Number of runs behind the number; None if the paper does not say.
        origin: Who measured it.
    """

    column: PublishedColumn
    dimensions: int | None
    as_published: str
    plus_minus: float | None
    spread: SpreadKind | None
    runs: int | None
    origin: RowOrigin

    @property
    def value(self) -> float | None:
        """The number as published: percent where the metric is one; `62K` steps are 62000. None for a dash."""
        return float(self._exact) if self.as_published else None

    @property
    def unit(self) -> float:
        """Factor from the published unit to that of our records: 0.01 for percent."""
        return float(self._unit)

    @property
    def mean(self) -> PublishedMean | None:
        """The number as a measurement, in the units of our records: fractions of 1 for percent. None for a dash.

        A number of unknown runs counts as a single run, which gives the widest interval.
        """
        if not self.as_published:
            return None
        deviation = None
        if self.plus_minus is not None and self.runs and self.runs > 1 and self.spread != "not stated":
            deviation = self.plus_minus * self.unit
            if self.spread == "95 % interval":
                deviation = deviation_of_interval(deviation, self.runs)
        last_digit = Decimal(1).scaleb(int(self._exact.as_tuple().exponent))
        rounding = float(last_digit * self._unit / 2)
        return PublishedMean(float(self._exact * self._unit), rounding, self.runs or 1, deviation)

    @property
    def _exact(self) -> Decimal:
        return Decimal(self.as_published.replace("K", "e3"))

    @property
    def _unit(self) -> Decimal:
        return Decimal("0.01") if is_in_percent(self.column.metric) else Decimal(1)


@dataclass(frozen=True)
class PublishedRow:
    """One published row.

    Attributes:
        key: What the row is called in an experiment that reproduces it: the name of an ablation, or the key of our
            card; None where we have no such method.
        trunk: As published; empty where the paper does not say, as is `setting`.
        dimensions: None where its columns differ in them or the paper does not say.
    """

    label: str
    key: str | None
    trunk: str
    dimensions: int | None
    setting: str
    cells: Mapping[PublishedColumn, PublishedCell]


@dataclass(frozen=True)
class PublishedTable:
    """A published table: rows and columns in the paper's order.

    Every row has a cell in every column. Non-isotropy regularization's Table 3, which repeats its rows for the second
    dataset, has that dataset's columns beside the first's instead.
    """

    name: str
    title: str
    paper: str
    columns: tuple[PublishedColumn, ...]
    rows: tuple[PublishedRow, ...]


def published_tables() -> list[str]:
    """The names that `published_table` takes."""
    return [str(name) for name in read_published("tables")["name"]]


@cache
def published_table(name: str) -> PublishedTable:
    """The published table of that name; raises ValueError for another name."""
    tables = read_published("tables").set_index("name")
    if name not in tables.index:
        raise ValueError(f"no published table is called {name!r}; there are {', '.join(tables.index)}")
    lines, origins = read_published("cells"), _origins(name)
    rows: dict[tuple[str, str | None, str, int | None, str], dict[PublishedColumn, PublishedCell]] = {}
    for line in lines[lines["table"] == name].to_dict("records"):
        column = PublishedColumn(line["dataset"], line["metric"], line["kind"])
        # MLRC's two embeddings of a method are one row, although they differ in size.
        size = line["dimensions"] if column.kind == "single" else ""
        row = (line["label"], line["key"] or None, line["trunk"], int(size) if size else None, line["setting"])
        rows.setdefault(row, {})[column] = PublishedCell(
            column,
            dimensions=int(line["dimensions"]) if line["dimensions"] else None,
            as_published=line["value"],
            plus_minus=float(line["plus_minus"]) if line["plus_minus"] else None,
            spread=line["spread"] or None,
            runs=int(line["runs"]) if line["runs"] else None,
            origin=origins[(line["label"], line["trunk"], size, line["setting"], column.dataset)],
        )
    columns = tuple(dict.fromkeys(column for cells in rows.values() for column in cells))
    found = tuple(PublishedRow(*row, cells) for row, cells in rows.items())
    return PublishedTable(name, tables["title"][name], tables["paper"][name], columns, found)


Reproducibility = Literal["runnable", "not runnable", "quoted", "source unclear", "method not in the suite"]


class CoveredRow(NamedTuple):
    """A published row on one dataset, and whether the suite's experiment of the table's name, or its panel, runs it.

    `detail` is this experiment, the paper that the row is quoted from, or the reason why it cannot be run.
    """

    table: str
    label: str
    dataset: str
    method: str | None
    origin: RowOrigin
    status: Reproducibility
    detail: str


def covered_rows(table: str) -> list[CoveredRow]:
    """Return the rows of a published table, once for each of its datasets."""
    return [
        CoveredRow(table, row.label, dataset, row.key, origin, *_coverage(table, row.key, origin))
        for row in published_table(table).rows
        for dataset, origin in {column.dataset: cell.origin for column, cell in row.cells.items()}.items()
    ]


def _coverage(table: str, method: str | None, origin: RowOrigin) -> tuple[Reproducibility, str]:
    if origin.not_determined:
        return "not runnable", f"cannot be determined: {origin.not_determined}"
    if method is None:
        return "method not in the suite", origin.quoted_from or origin.conditions
    if origin.kind == "measured":
        return "runnable", table
    return ("quoted", origin.quoted_from) if origin.kind == "quoted" else ("source unclear", origin.evidence)


@cache
def read_published(file: str) -> pd.DataFrame:
    """One of the CSV files in results/published/, every field as the text that it is."""
    with resources.files("results").joinpath("published", f"{file}.csv").open(encoding="utf-8") as text:
        return pd.read_csv(text, dtype=str, keep_default_na=False)


def _origins(table: str) -> dict[tuple[str, ...], RowOrigin]:
    """The lines of `rows.csv` for a table, by label, trunk, size, setting and dataset."""
    names, lines = [field.name for field in fields(RowOrigin)], read_published("rows")
    return {
        (*(line[name] for name in ("label", "trunk", "dimensions", "setting")), dataset): RowOrigin(
            **{name: line[name] for name in names}
        )
        for line in lines[lines["table"] == table].to_dict("records")
        for dataset in line["datasets"].split(";")
    }


class FigureValue(NamedTuple):
    """One value of a published figure: a score, as a fraction of 1, at a place on the horizontal axis.

    The series is the line: the key of a method, or the value of the line's hyperparameter; empty where there is one.
    """

    dataset: str
    series: str
    x: float
    score: float


def figure_values(figure: str) -> tuple[FigureValue, ...]:
    """Return the known values of a published figure, in the order of the file; none for an unknown figure."""
    lines = read_published("figure_values")
    return tuple(
        FigureValue(line["dataset"], line["series"], float(line["x"]), float(line["value"]) / 100)
        for line in lines[lines["figure"] == figure].to_dict("records")
    )
