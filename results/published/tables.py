"""The numbers that the papers and MLRC published, as frozen values, from the CSV files in results/published/.

`seed_results.csv` and `mlrc_results.csv` hold the cells, `tables.csv` says which of their rows make a table, and
`methods.csv` which of our method cards a label means.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple

import pandas as pd

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


@dataclass(frozen=True)
class PublishedCell:
    """One published number.

    Attributes:
        key: What the row is called in an experiment that reproduces it: the name of an ablation, or the key of our
            card; None where we have no such method.
        kind: Which embeddings were tested; `single` is one model on all training classes.
        trunk: As published; empty where the paper does not say.
        dimensions: Of what was tested (MLRC's concatenated embeddings have 512); None where the paper does not say.
        setting: As published; empty where the paper does not say.
        as_published: The number with the paper's digits; empty for a dash.
        plus_minus: The number behind ±, in the unit of `value`; `results.published.rows` says what it is.
    """

    table_name: str
    paper: str
    dataset: str
    method_label: str
    key: str | None
    metric: str
    kind: Kind
    trunk: str
    dimensions: int | None
    setting: str
    as_published: str
    plus_minus: float | None
    source: str

    @property
    def column(self) -> PublishedColumn:
        """The column that the cell is in."""
        return PublishedColumn(self.dataset, self.metric, self.kind)

    @property
    def value(self) -> float | None:
        """The number as published: percent where the metric is one; `62K` steps are 62000. None for a dash."""
        return float(self._exact()) if self.as_published else None

    @property
    def measure(self) -> float | None:
        """The number in the units of our records: fractions of 1 in place of percent."""
        return float(self._exact() * self._unit()) if self.as_published else None

    @property
    def unit(self) -> float:
        """Factor from the published unit to that of our records: 0.01 for percent."""
        return float(self._unit())

    @property
    def rounding(self) -> float:
        """Half a unit of the last published digit, in the units of our records: what rounding may have changed."""
        digits = Decimal(self.as_published.removesuffix("K") or "0")
        thousands = 1000 if self.as_published.endswith("K") else 1
        exponent = digits.as_tuple().exponent
        return float(Decimal(1).scaleb(int(exponent)) * thousands * self._unit() / 2)

    def _exact(self) -> Decimal:
        if self.as_published.endswith("K"):
            return 1000 * Decimal(self.as_published[:-1])
        return Decimal(self.as_published)

    def _unit(self) -> Decimal:
        return Decimal(1) if self.metric in _NOT_PERCENT else Decimal("0.01")


@dataclass(frozen=True)
class PublishedRow:
    """One published row. dimensions: None where its columns differ in them or the paper does not say."""

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

    @property
    def cells(self) -> tuple[PublishedCell, ...]:
        """All cells, row by row."""
        return tuple(row.cells[column] for row in self.rows for column in self.columns)


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
    keys = _row_keys(name)
    cells = [_cell(name, row, keys) for row in frame.to_dict("records")]
    columns = tuple(dict.fromkeys(cell.column for cell in cells))
    return PublishedTable(name, str(made_of["title"]), str(made_of["paper"]), columns, _rows(cells))


def _row_keys(table: str) -> dict[str, str | None]:
    named = read_published("methods")
    own = named[named["table"] == table]
    return {line["label"]: line["variant"] or line["method"] or None for line in own.to_dict("records")}


@cache
def read_published(file: str) -> pd.DataFrame:
    """One of the CSV files in results/published/, every field as the text that it is."""
    with resources.files("results").joinpath("published", f"{file}.csv").open(encoding="utf-8") as text:
        return pd.read_csv(text, dtype=str, keep_default_na=False)


def _cell(table: str, row: Mapping[Any, str], keys: Mapping[str, str | None]) -> PublishedCell:
    kind, setting = _KINDS.get(row["setting"], ("single", row["setting"]))
    return PublishedCell(
        table_name=table,
        paper=row["paper"],
        dataset=DATASETS[row["dataset"]],
        method_label=row["method"],
        key=keys[row["method"]],
        metric=metric_name(row["metric"]),
        kind=kind,
        trunk=row["backbone"],
        dimensions=int(row["dim"]) if row["dim"] else None,
        setting=setting,
        as_published=row["value"],
        plus_minus=float(row["ci_or_std"]) if row["ci_or_std"] else None,
        source=row["seed"],
    )


def metric_name(title: str) -> str:
    """Return our name of a metric from its name in the papers, such as `R@1`; raise ValueError for an unknown one."""
    if title in _METRICS:
        return _METRICS[title]
    name, _, cutoff = title.partition("@")
    if name not in ("R", "Recall") or not cutoff.isdigit():
        raise ValueError(f"published metric {title!r} has no name of ours")
    return f"recall@{cutoff}"


def _rows(cells: list[PublishedCell]) -> tuple[PublishedRow, ...]:
    """Cells of one label, trunk, setting and, except for MLRC's pairs of embeddings, size make a row."""
    grouped: dict[tuple[Any, ...], list[PublishedCell]] = {}
    for cell in cells:
        size = cell.dimensions if cell.kind == "single" else None
        grouped.setdefault((cell.method_label, cell.trunk, cell.setting, size), []).append(cell)
    rows = []
    for (label, trunk, setting, size), own in grouped.items():
        by_column = {cell.column: cell for cell in own}
        rows.append(PublishedRow(label, own[0].key, trunk, size, setting, by_column))
    return tuple(rows)


@dataclass(frozen=True)
class FigureValue:
    """One value of a published figure.

    Attributes:
        series: Line of the figure: the key of a method, or the value of the line's hyperparameter; empty for a figure
            with one line.
        x: Position on the horizontal axis: an epoch or the value of a hyperparameter.
        score: The score as a fraction of 1.
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
