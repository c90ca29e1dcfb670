"""Builds an experiment's page: collects plain values for its template, and draws the figures beside it."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from typing import Any, NamedTuple

from reports.headline import headline
from reports.page.drawn_figure import Drawn
from reports.page.embedding_figures import embedding_figures, galleries
from reports.page.material import Material
from reports.page.pair_matrix import pair_matrix
from reports.page.ranking import ranking
from reports.page.render import Download, downloads_of, render_template
from reports.page.run_figures import run_figures
from reports.published.eligibility import StoredExperiment, concerns
from reports.published.join import ComparedTable, join
from reports.published.layout import published_layout
from reports.tables.costs import costs
from reports.tables.differences import asked_pairs, differences
from reports.tables.hyperparameters import hyperparameters
from reports.tables.peeking import peeking_table
from reports.tables.result_table import table_of
from reports.tables.table import Table
from reports.tables.uncertainty import uncertainty_table
from results.published.tables import published_table, published_tables
from results.records.records import Provenance
from results.wording import capitalized

MOST_PAIRS = 60
"""A table of more pairs is shown with those of the best method only. The files have all."""


class PageTable(NamedTuple):
    """A table with the files that the page offers of it."""

    table: Table
    downloads: tuple[Download, ...]


def build_page(material: Material) -> tuple[str, tuple[Drawn, ...]]:
    """Return the page of an experiment as HTML, and all its figures. Parts without data are left out."""
    figures = (*run_figures(material), *embedding_figures(material)) if material.records else ()
    return render_template("page.html", **page_values(material, figures)), figures


def page_values(material: Material, figures: tuple[Drawn, ...] = ()) -> dict[str, Any]:
    """Return the values of the page's template."""
    measured, shown = material.measured, [figure for figure in figures if figure.on_page]
    folds = dict.fromkeys(figure.fold for figure in shown)
    compared = _published(material)
    environments, numbers = _environments(material)
    return {
        "material": material,
        "headline": headline(measured),
        "findings": {level: [one for one in material.findings if one.level == level] for level in _LEVELS},
        "ranking": ranking(material),
        "matrix": pair_matrix(material),
        "asked": capitalized(asked_pairs(material.comparison, material.titles)) if material.comparison else "",
        "pairs": _pairs(material),
        "uncertainty": _of_the_best(material, _table(material, uncertainty_table(measured), "uncertainty")),
        "published": [
            PageTable(table := published_layout(_with_runs(one)), downloads_of(table, one.published.name))
            for one in compared
            if any(row.was_run for row in one.rows)
        ],
        "not_compared": [one for one in compared if not any(row.was_run for row in one.rows)],
        "scores": _table(material, table_of(measured), "table"),
        "details": _details(material),
        "figures": {fold: [figure for figure in shown if figure.fold == fold] for fold in folds},
        "galleries": galleries(material),
        "settings": _flat(measured.summary.experiment.without_folder()),
        "environments": environments,
        "environment_of": numbers,
        "commits": sorted({run.provenance.commit for run in measured.records} - {"unknown"}),
        "version": _version(),
    }


_LEVELS = ("limit", "warning", "note")


def _table(material: Material, table: Table, name: str) -> PageTable:
    """A table without the title of the experiment, and without the findings, which the page shows once."""
    said = {finding.sentences for finding in material.findings}
    title = capitalized(table.title.removeprefix(f"{material.measured.summary.title}: "))
    notes, remarks = (tuple(note for note in of if note not in said) for of in (table.notes, table.remarks))
    return PageTable(replace(table, title=title, notes=notes, remarks=remarks), downloads_of(table, name))


def _pairs(material: Material) -> PageTable | None:
    if material.comparison is None or not material.comparison.pairs:
        return None
    return _of_the_best(material, _table(material, differences(material.measured), "differences"))


def _of_the_best(material: Material, given: PageTable) -> PageTable:
    table = given.table
    if len(table.rows) <= MOST_PAIRS:
        return given
    best = material.best_first[0]
    rows = tuple(row for row, values in zip(table.rows, table.sheet.rows, strict=True) if best in values[:2])
    caption = f"{table.caption} Shown: those with {material.titles[best]}. The files have all {len(table.rows):,}."
    return given._replace(table=replace(table, rows=rows, caption=caption))


def _details(material: Material) -> list[PageTable]:
    measured = material.measured
    tables = (
        ("hyperparameters", hyperparameters(measured, material.published_names)),
        ("peeking", peeking_table(measured)),
        ("costs", costs(measured)),
    )
    return [_table(material, table, name) for name, table in tables if table.rows]


def _published(material: Material) -> list[ComparedTable]:
    """The published tables that concern the experiment; one without any value of ours if it says why."""
    stored = StoredExperiment(material.name, material.measured, material.deviations, material.mlrc)
    tables = [
        join(table, [stored])
        for table in map(published_table, published_tables())
        if concerns(table, material.name, material.measured.summary)
    ]
    return [table for table in tables if table.notes]


def _with_runs(compared: ComparedTable) -> ComparedTable:
    return replace(compared, rows=tuple(row for row in compared.rows if row.was_run))


def _environments(material: Material) -> tuple[list[Provenance], dict[str, int]]:
    """The different environments of the runs, and the number of its environment by the fingerprint of a run."""
    found: dict[str, Provenance] = {}
    numbers = {}
    for run in (run for runs in material.records.values() for run in runs):
        environment = run.provenance.model_copy(update={"finished_at": ""})
        found.setdefault(key := environment.model_dump_json(), environment)
        numbers[run.fingerprint] = list(found).index(key) + 1
    return list(found.values()), numbers


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Flatten nested settings. The name of a value is its path, such as `training.optimizer.lr`."""
    flat: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif value not in ([], None):
            flat[prefix + name] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return flat


def _version() -> str:
    try:
        return metadata.version("metric-learning-reproductions")
    except metadata.PackageNotFoundError:
        return ""
