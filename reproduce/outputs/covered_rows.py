"""Which published rows this suite can reproduce, and why not the others; without torch and without a store."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from reports.published.eligibility import StoredExperiment, concerns, objections
from reproduce.config.experiment_file import experiment_names, load_experiments
from results.findings.experiment import answer_of
from results.published.tables import (
    PublishedCell,
    PublishedRow,
    PublishedTable,
    RowOrigin,
    published_table,
    published_tables,
)
from results.records.experiment_summary import ExperimentSummary
from results.store.experiment_results import MeasuredExperiment

Reproducibility = Literal["runnable", "not runnable", "quoted", "source unclear", "method not in the suite"]
STATUSES: tuple[Reproducibility, ...] = get_args(Reproducibility)


@dataclass(frozen=True)
class CoveredRow:
    """One published row on one dataset.

    Attributes:
        table: Name of the published table.
        label: The row as published.
        dataset: Key of the dataset.
        status: Whether a shipped experiment file reproduces the row. Rows of methods that the suite lacks say so; other
            rows that the paper did not measure itself are `quoted` or `source unclear`.
        detail: The experiment that reproduces it, the paper that it is quoted from, or the reason why it cannot be run.
        method: What the row is called in the experiment: a method card or a variant; None if the suite has no method.
        origin: Who measured it.
    """

    table: str
    label: str
    dataset: str
    status: Reproducibility
    detail: str
    method: str | None
    origin: RowOrigin


@cache
def covered_rows() -> tuple[CoveredRow, ...]:
    """Every published row on every dataset that its table has, in the tables' order."""
    shipped = []
    for file in experiment_names():
        for name, experiment in load_experiments(file, {}).items():
            # As a store would have it, without a run.
            measured = MeasuredExperiment(ExperimentSummary(methods={}, runs={}, experiment=experiment), ())
            shipped.append(StoredExperiment(name, answer_of(measured)))
    return tuple(row for name in published_tables() for row in _covered(published_table(name), shipped))


def _covered(table: PublishedTable, shipped: list[StoredExperiment]) -> Iterator[CoveredRow]:
    relevant = [stored for stored in shipped if concerns(table, stored.name, stored.measured.summary)]
    for row in table.rows:
        for dataset in dict.fromkeys(column.dataset for column in table.columns):
            cell = next(cell for column, cell in row.cells.items() if column.dataset == dataset)
            yield CoveredRow(table.name, row.label, dataset, *_status(table, row, cell, relevant), row.key, cell.origin)


def _status(
    table: PublishedTable, row: PublishedRow, cell: PublishedCell, shipped: list[StoredExperiment]
) -> tuple[Reproducibility, str]:
    origin = cell.origin
    if origin.not_determined:
        return "not runnable", f"cannot be determined: {origin.not_determined}"
    if row.key is None:
        return "method not in the suite", origin.quoted_from or origin.conditions
    if origin.kind == "quoted":
        return "quoted", origin.quoted_from
    if origin.kind == "unclear":
        return "source unclear", origin.evidence
    reasons: list[list[str]] = [["no shipped experiment has this row"]]
    for stored in shipped:
        if stored.dataset != cell.column.dataset or row.key not in stored.measured.summary.experiment.rows:
            continue
        against = objections(table, row, cell, stored)
        if not against:
            return "runnable", stored.name
        reasons.append([f"{stored.name}: {reason}" for reason in against])
    fewest = sorted(reasons[1:] or reasons, key=len)[0]
    return "not runnable", "; ".join(fewest)
