"""The page's tables: scores, published tables, differences, class intervals, doubt, peeking, settings, costs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reports.page.content import Download, Part, TableSection
from reports.page.material import Material
from reports.page.sections.class_intervals import OverClasses, classes_table
from reports.page.sections.published_values import PublishedValue, published_values
from reports.published.join import ComparedTable
from reports.published.layout import published_layout
from reports.tables.costs import costs
from reports.tables.differences import differences
from reports.tables.formats import WRITERS
from reports.tables.hyperparameters import hyperparameters
from reports.tables.peeking import peeking_table
from reports.tables.result_table import RESULT_COLUMNS, ResultColumn, cells_beside, result_cells, table_of
from reports.tables.table import Cell, Line, Row, Table
from reports.tables.uncertainty import uncertainty_table
from reports.wording import capitalized, origin_of_mean
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.primary_comparison import method_intervals, unit_of, unit_values
from results.statistics.published_verdict import published_verdict
from results.statistics.run_values import by_search, values_by_run
from results.store.experiment_results import MeasuredExperiment


def scores_table(
    results: Table,
    measured: MeasuredExperiment,
    published: Mapping[tuple[str, ResultColumn], PublishedValue] | None = None,
    absent: Mapping[str, str] | None = None,
) -> Table:
    """Build the table of results for the page.

    Args:
        results: The table of results of the experiment.
        published: Published values by method and column. A cell gets a verdict if our runs or the
            paper show how much runs vary.
        absent: Titles by key of methods without runs. Their rows have the words "not run".
    """
    columns = {column: _Column(measured, column) for column in RESULT_COLUMNS}
    rows = []
    for row in results.rows:
        cells = [
            columns[column].cell(row, cell, (published or {}).get((row.key, column)))
            for column, cell in result_cells(row).items()
        ]
        rows.append(Row.single(row.head, (row.lines[0].cells[0], *cells, *cells_beside(row)), row.key, row.sign))
    not_run = [Cell(kind="not run") for _ in results.columns[1:]]
    rows += [Row.single(title, (Cell(0), *not_run), key) for key, title in (absent or {}).items()]
    return replace(results, title="Test scores", rows=tuple(rows))


class _Column:
    """The values behind a column of results, for the tooltips and the published values."""

    def __init__(self, measured: MeasuredExperiment, column: ResultColumn) -> None:
        kind, metric = column
        self.name = f"{kind} {HEADLINE_METRICS[metric]}"
        self.by_run = values_by_run(measured.records, metric, kind)
        self.units, self.intervals = unit_values(measured, self.by_run), method_intervals(measured, self.by_run)
        self.unit = "search" if unit_of(measured.summary.experiment) == "search" else "run"

    def cell(self, row: Row, cell: Cell, published: PublishedValue | None) -> Cell:
        key = row.key
        tooltip = origin_of_mean(f"{row.head}, {self.name}", self.units[key].units, self.intervals[key], self.unit)
        if published is None:
            return replace(cell, tooltip=tooltip)
        source = f" ({published.source})" if published.source else ""
        tooltip += f"\npublished: {100 * published.mean.value:.2f}{source}"
        searches = list(by_search(self.by_run[key]).values())
        return replace(cell, tooltip=tooltip, verdict=published_verdict(searches, published.mean))


_FILES = (
    ("csv", "csv", "text/csv"),
    ("md", "markdown", "text/markdown"),
    ("tex", "latex", "application/x-tex"),
)
"""Suffix, format and media type of the files that the page offers."""

MOST_METHODS = 10
"""Largest number of methods whose pairs are all rows of a table on the page."""

MOST_ROWS = 1_000
"""Tables with more rows are offered as CSV alone, to keep the page small."""


def tables_of(
    material: Material, compared: Sequence[ComparedTable], classes: OverClasses | None
) -> tuple[TableSection, ...]:
    """Build all tables for which there are runs."""
    measured = material.measured
    sections = [_scores(material, compared)]
    if len(material.records) >= 2:
        sections.append(_section(differences(measured), "differences", material, "pairs"))
    sections.append(_doubt(material))
    if classes:
        sections.append(_section(classes_table(material, classes), "classes", material, "classes"))
    sections += [_published(table) for table in compared if any(row.was_run for row in table.rows)]
    sections += [
        _section(peeking_table(measured), "peeking", material, "search"),
        _section(hyperparameters(measured, material.published_names), "hyperparameters", material, "search"),
        _section(costs(measured), "costs", material, "costs"),
    ]
    return tuple(section for section in sections if section.table.rows)


def _scores(material: Material, compared: Sequence[ComparedTable]) -> TableSection:
    results = table_of(material.measured)
    published = {(key, (score.kind, score.metric)): value for (key, score), value in published_values(compared).items()}
    absent = {key: title for key, title in material.titles.items() if key not in material.records}
    return TableSection(scores_table(results, material.measured, published, absent), _downloads(results, "table"))


def _published(compared: ComparedTable) -> TableSection:
    rows = tuple(row for row in compared.rows if row.was_run)
    table = published_layout(replace(compared, rows=rows))
    left_out = len(compared.rows) - len(rows)
    sentence = f" {left_out} published rows without runs are left out here." if left_out else ""
    table = replace(table, caption=table.caption + sentence)
    return TableSection(_for_page(table), _downloads(table, compared.published.name), "papers")


def _doubt(material: Material) -> TableSection:
    """The table of doubt. Of many methods the page shows only the pairs with the best one; the files have all."""
    table = uncertainty_table(material.measured)
    section = _section(table, "doubt", material, "doubt")
    if len(material.records) <= MOST_METHODS or material.comparison is None:
        return section
    best = material.comparison.highest
    rows = tuple(row for row, values in zip(table.rows, table.sheet.rows, strict=True) if best in values[:2])
    sentence = f" The pairs with {material.titles[best]} are shown. The files have all {len(table.rows):,} pairs."
    shown = _for_page(replace(table, title=section.table.title, caption=table.caption + sentence, rows=rows))
    return replace(section, table=shown)


def _section(table: Table, name: str, material: Material, part: Part) -> TableSection:
    title = table.title.removeprefix(f"{material.measured.summary.title}: ")
    drawn = replace(_for_page(table), title=capitalized(title))
    return TableSection(drawn, _downloads(table, name), part)


def _for_page(table: Table) -> Table:
    """Drop the columns that are empty in every row, and make each line a row of its own."""
    columns = [index for index in range(len(table.columns)) if any(not line.cells[index].empty for line in table.lines)]
    rows = []
    for row in table.rows:
        for line in row.lines:
            head = f"{row.head}, {line.name}" if line.name else row.head
            rows.append(Row(head, (Line(tuple(line.cells[index] for index in columns)),), row.key, row.sign))
    return replace(table, columns=tuple(table.columns[index] for index in columns), rows=tuple(rows))


def _downloads(table: Table, name: str) -> tuple[Download, ...]:
    files = _FILES[:1] if len(table.rows) > MOST_ROWS else _FILES
    return tuple(Download(f"{name}.{suffix}", media_type, WRITERS[form](table)) for suffix, form, media_type in files)
