"""Figures of the section on published values: one for each score of a published table."""

from collections.abc import Iterable, Iterator, Sequence

from reports.figures.beside_print import PublishedRowValues, beside_print
from reports.figures.style import PAGE_WIDTH
from reports.page.material import Material
from reports.page.sections.alternative_texts import of_published_rows
from reports.page.sections.drawn_figure import Drawn, drawn
from reports.published.join import ComparedRow, ComparedTable
from reports.published.layout import metric_title
from results.published.precision import published_mean
from results.published.tables import PublishedColumn
from results.statistics.intervals import Interval


def papers_figures(material: Material, tables: Sequence[ComparedTable]) -> Iterator[Drawn]:
    """Draw the published values that are beside our runs, one figure for each score of a table, the primary first.

    All figures of a table but the first are collapsed. A score without such values has no figure.
    """
    for table in tables:
        fold = ""
        for column in sorted(table.published.columns, key=lambda column: not _is_primary(material, column)):
            for figure in _of_column(table, column, fold):
                fold = f"Other scores of {table.published.title}"
                yield figure


def _of_column(table: ComparedTable, column: PublishedColumn, fold: str) -> Iterable[Drawn]:
    rows = [values for row in table.rows if (values := _values(row, column)) is not None]
    kind = "" if column.kind == "single" else f"{column.kind} "
    score = f"{kind}{metric_title(column)}"
    unit = ", %" if all(row.cells[column].scale != 1 for row in table.rows) else ""
    name = f"published_{table.published.name}_{column.dataset}_{score}".lower()
    return drawn(
        name.replace(" ", "_").replace("@", "_at_"),
        f"{table.published.title}: {score}",
        lambda: beside_print(rows, f"{score}{unit}", PAGE_WIDTH),
        lambda: of_published_rows(rows, score),
        "A diamond inside our prediction interval is compatible with our runs. That interval is wider than the "
        "interval of our mean, because the published value is a measurement too.",
        fold,
        part="papers",
    )


def _values(row: ComparedRow, column: PublishedColumn) -> PublishedRowValues | None:
    cell = row.cells[column]
    if cell.ours is None or cell.row_origin is None:
        return None
    published = published_mean(cell.published, cell.row_origin)
    if published is None:
        return None
    scale = cell.scale
    prediction = None if cell.prediction is None else _scaled(cell.prediction, scale)
    return PublishedRowValues(row.label, scale * published.value, _scaled(cell.ours, scale), prediction)


def _scaled(interval: Interval, scale: float) -> Interval:
    half = None if interval.half_width is None else scale * interval.half_width
    return Interval(scale * interval.mean, half, interval.n)


def _is_primary(material: Material, column: PublishedColumn) -> bool:
    score = material.scores[0]
    kind = "separated" if column.kind == "single" else column.kind
    return (column.metric, kind) == (score.metric, score.kind)
