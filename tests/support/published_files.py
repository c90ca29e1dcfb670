"""The published tables' files as they are, and the method cards."""

import csv
from functools import cache
from pathlib import Path

from reports.published.eligibility import StoredExperiment, objections
from reproduce.config.experiment_file import experiment_names, load_experiments
from reproduce.config.strict_yaml import read_yaml
from results.findings.experiment import answer_of
from results.published.tables import covered_rows, published_table, published_tables
from results.spec.plan import Plan
from results.store.experiment_results import MeasuredExperiment

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "results" / "published"
CARDS = {path.stem: read_yaml(path.read_text()) for path in (ROOT / "reproduce" / "methods").glob("*.yaml")}


def lines(name):
    with (PUBLISHED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def covered():
    """Every published row; one that is said to be runnable with the shipped experiment that runs it as published."""
    return [
        row._replace(detail=experiment_of(row)) if row.status == "runnable" else row
        for table in published_tables()
        for row in covered_rows(table)
    ]


def experiment_of(row):
    table = published_table(row.table)
    cells = [
        (one, cell)
        for one in table.rows
        for column, cell in one.cells.items()
        if (one.label, one.key, column.dataset, cell.origin) == (row.label, row.method, row.dataset, row.origin)
    ]
    panels = [load_experiments(row.table, {})] if row.table in experiment_names() else []
    for name, experiment in (item for file in panels for item in file.items()):
        plan = Plan(rows={}, experiment=experiment)
        stored = StoredExperiment(name, answer_of(MeasuredExperiment(plan, ())))
        if stored.dataset == row.dataset and row.method in experiment.rows and not objections(table, *cells[0], stored):
            return name
    raise AssertionError(f"no shipped experiment runs {row}")
