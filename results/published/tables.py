"""The numbers that the papers and MLRC published, as frozen values, from the CSV files in results/published/.

`seed_results.csv` and `mlrc_results.csv` hold the cells, `tables.csv` says which of their rows make a table, and
`methods.csv` which of our method cards a label means.

`rows.csv` says who measured a row, with the evidence. A run of ours can reproduce a row only if the paper measured it
itself; a row that was copied from another paper was made under that paper's conditions. It was written from the papers
and from the authors' code, independently of the experiment files of this suite. `settings.csv` has the numbers of runs
behind the values, and `spreads.csv` says for each table what its ± is. Papers often state neither.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple

import pandas as pd

from results.statistics.intervals import PublishedMean, deviation_of_interval

Kind = Literal["separated", "concatenated", "single"]

DATASETS = {
    **dict.fromkeys(("CUB", "CUB200", "CUB-200-2011", "CUB200-2011"), "cub200"),
    **dict.fromkeys(("Cars196", "Cars-196", "CARS196"), "cars196"),
    "SOP": "sop",
    **dict.fromkeys(("In-Shop", "In-shop"), "inshop"),
}
"""Our datasets' keys by their names in the papers."""

_METRICS = {
    # Recall@1 is precision@1: whether the nearest image is of the query's class.
    **dict.fromkeys(("P@1", "R@1", "Recall@1"), "precision_at_1"),
    **dict.fromkeys(("RP", "P@R"), "r_precision"),
    "MAP@R": "map_at_r",
    "mAP@1000": "map@1000",
    "NMI": "nmi",
    "spectral decay": "spectral_decay",
    "representational density (intra/inter distance ratio)": "density",
    "variance of class concentrations": "class_concentration_variance",
    "embedding space uniformity": "uniformity",
    "total training steps": "total_training_steps",
}
_NOT_PERCENT = {"spectral_decay", "density", "class_concentration_variance", "uniformity", "total_training_steps"}
_KINDS: dict[str, tuple[Kind, str]] = {
    "MLRC; 512D concatenated": ("concatenated", "MLRC"),
    "MLRC; 128D separated": ("separated", "MLRC"),
    # Published as averages over the four fold models.
    "MLRC; training cost": ("separated", "MLRC"),
}


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
    """

    kind: Literal["measured", "quoted", "unclear"]
    quoted_from: str
    evidence: str
    conditions: str
    printed_row: str
    our_reading: str
    not_determined: str


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
        last_digit = Decimal(1).scaleb(int(Decimal(self._digits).as_tuple().exponent)) * self._thousands
        rounding = float(last_digit * self._unit / 2)
        return PublishedMean(float(self._exact * self._unit), rounding, self.runs or 1, deviation)

    @property
    def _digits(self) -> str:
        return self.as_published.removesuffix("K")

    @property
    def _thousands(self) -> int:
        return 1000 if self.as_published.endswith("K") else 1

    @property
    def _exact(self) -> Decimal:
        return Decimal(self._digits) * self._thousands

    @property
    def _unit(self) -> Decimal:
        return Decimal(1) if self.column.metric in _NOT_PERCENT else Decimal("0.01")


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
    made_of = tables.loc[name]
    frame = read_published(str(made_of["file"]))
    for field in ("paper", "table", "dataset"):
        if made_of[field]:
            frame = frame[frame[field] == made_of[field]]
    cells: dict[tuple[str, str, int | None, str], dict[PublishedColumn, PublishedCell]] = {}
    for line in frame.to_dict("records"):
        kind, setting = _KINDS.get(line["setting"], ("single", line["setting"]))
        size = int(line["dim"]) if line["dim"] else None
        # MLRC's two embeddings of a method are one row, although they differ in size.
        row = (line["method"], line["backbone"], size if kind == "single" else None, setting)
        column = PublishedColumn(DATASETS[line["dataset"]], metric_name(line["metric"]), kind)
        cells.setdefault(row, {})[column] = _cell(name, row, column, size, line)
    named = read_published("methods")
    keys = {one["label"]: one["variant"] or one["method"] for one in named[named["table"] == name].to_dict("records")}
    rows = tuple(PublishedRow(row[0], keys[row[0]] or None, *row[1:], own) for row, own in cells.items())
    columns = tuple(dict.fromkeys(column for row in rows for column in row.cells))
    return PublishedTable(name, str(made_of["title"]), str(made_of["paper"]), columns, rows)


@cache
def read_published(file: str) -> pd.DataFrame:
    """One of the CSV files in results/published/, every field as the text that it is."""
    with resources.files("results").joinpath("published", f"{file}.csv").open(encoding="utf-8") as text:
        return pd.read_csv(text, dtype=str, keep_default_na=False)


def _cell(
    table: str,
    row: tuple[str, str, int | None, str],
    column: PublishedColumn,
    dimensions: int | None,
    line: Mapping[Any, str],
) -> PublishedCell:
    origin = _origins()[(table, *(str(part or "") for part in row), column.dataset)]
    plus_minus = float(line["ci_or_std"]) if line["ci_or_std"] else None
    spread = None if plus_minus is None else _spreads()[table]
    runs = _runs(table, column.dataset, origin.printed_row)
    return PublishedCell(column, dimensions, line["value"], plus_minus, spread, runs, origin)


@cache
def _origins() -> dict[tuple[str, ...], RowOrigin]:
    """The lines of `rows.csv` by table, label, trunk, size, setting and dataset."""
    names, origins = [field.name for field in fields(RowOrigin)], {}
    for line in read_published("rows").to_dict("records"):
        for dataset in line["datasets"].split(";"):
            row = (line[name] for name in ("table", "label", "trunk", "dimensions", "setting"))
            origins[(*row, dataset)] = RowOrigin(**{name: line[name] for name in names})
    return origins


@cache
def _spreads() -> dict[str, SpreadKind]:
    return dict(read_published("spreads")[["table", "kind"]].itertuples(index=False))


@cache
def _counts() -> dict[tuple[str, str, str], set[str]]:
    """The stated numbers of runs by table, dataset and printed row; `*` stands for all."""
    lines, counts = read_published("settings"), defaultdict[tuple[str, str, str], set[str]](set)
    # An inferred number is the audit's guess: the paper states none and its code fixes one seed.
    for line in lines[(lines["setting"] == "runs") & (lines["certainty"] != "inferred")].to_dict("records"):
        # `4 fold models; repetitions cannot be determined` states no number of runs.
        if match := re.fullmatch(r"(\d+)( reproductions of .*)?", line["value"]):
            counts[line["table"], line["dataset"], line["row"]].add(match[1])
    return counts


def _runs(table: str, dataset: str, row: str) -> int | None:
    found = set().union(*(_counts().get((table, d, r), ()) for d in (dataset, "*") for r in (row, "*")))
    return int(found.pop()) if len(found) == 1 else None


def metric_name(title: str) -> str:
    """Return our name of a metric from its name in the papers, such as `R@1`; raise ValueError for an unknown one."""
    if title in _METRICS:
        return _METRICS[title]
    name, _, cutoff = title.partition("@")
    if name not in ("R", "Recall") or not cutoff.isdigit():
        raise ValueError(f"published metric {title!r} has no name of ours")
    return f"recall@{cutoff}"


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
