"""Published tables that concern an experiment, and the verdicts of the comparison."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reports.figures import beside_print
from reports.figures.beside_print import PublishedRowValues
from reports.page.content import Verdict
from reports.page.material import Material, Score
from reports.page.sections.drawn_figure import Drawn, drawn
from reports.published.eligibility import StoredExperiment, concerns
from reports.published.join import ComparedCell, ComparedRow, ComparedTable, join
from reports.published.layout import metric_title
from reports.wording import runs
from results.published.rows import published_mean
from results.published.tables import PublishedCell, PublishedColumn, published_table, published_tables
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.published_verdict import PublishedMean


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
        lambda: beside_print.beside_print(rows, f"{score}{unit}"),
        lambda: beside_print.alternative_text(rows, score),
        beside_print.CAPTION,
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
    prediction = None if cell.prediction is None else cell.scaled(cell.prediction)
    return PublishedRowValues(row.label, cell.scale * published.value, cell.scaled(cell.ours), prediction)


def _is_primary(material: Material, column: PublishedColumn) -> bool:
    score = material.scores[0]
    kind = "separated" if column.kind == "single" else column.kind
    return (column.metric, kind) == (score.metric, score.kind)


class PublishedValue(NamedTuple):
    """A published value of one of our scores, as a fraction of 1, with the title of its table."""

    mean: PublishedMean
    source: str = ""


PublishedValues = Mapping[tuple[str, Score], PublishedValue]
"""Published values by method and score."""


def compared_tables(material: Material) -> tuple[ComparedTable, ...]:
    """Compare the experiment with the published tables that it concerns.

    A table without any value of ours stays if it has a note with the reason.
    """
    stored = StoredExperiment(material.name, material.measured, material.deviations, material.mlrc)
    tables = [
        join(table, [stored])
        for table in map(published_table, published_tables())
        if concerns(table, material.name, material.measured.summary)
    ]
    return tuple(table for table in tables if table.notes)


def published_values(tables: Sequence[ComparedTable]) -> PublishedValues:
    """Return the published values beside our runs, for the headline metrics. The first of several values counts."""
    values: dict[tuple[str, Score], PublishedValue] = {}
    for table in tables:
        for cell in _run(table):
            published = cell.published
            mean = None if cell.row_origin is None else published_mean(published, cell.row_origin)
            if published.metric in HEADLINE_METRICS and published.key and mean is not None:
                values.setdefault((published.key, _score(published)), PublishedValue(mean, table.published.title))
    return values


def published_verdicts(tables: Sequence[ComparedTable], titles: Mapping[str, str]) -> Iterator[Verdict]:
    """Make a sentence for each published value beside our runs. A table without any gets a warning with the reason."""
    for table in tables:
        cells = _run(table)
        for cell in cells:
            yield from _verdict(table, cell, titles)
        if not cells:
            yield Verdict("warning", f"Not compared with {table.published.title}.", " ".join(table.notes))


def _run(table: ComparedTable) -> list[ComparedCell]:
    return [cell for cell in table.cells if cell.ours is not None]


def _score(published: PublishedCell) -> Score:
    if published.kind == "single":
        return Score(published.metric, "separated", True)
    return Score(published.metric, published.kind)


def _verdict(table: ComparedTable, cell: ComparedCell, titles: Mapping[str, str]) -> Iterator[Verdict]:
    ours, published = cell.ours, cell.published
    if ours is None or not published.as_published:
        return
    kind = "" if published.kind == "single" else f"{published.kind} "
    subject = f"{titles.get(published.key or '', published.method_label)}, {kind}{metric_title(published.column)}"
    mean, source = f"{cell.scale * ours.mean:.2f}", f"{table.published.title}; our {runs(ours.n)}"
    prediction = cell.prediction
    if prediction is None or prediction.low is None or prediction.high is None:
        sentence = f"{subject}: published {published.as_published}, ours {mean}. A single run has no interval."
        yield Verdict("alone", sentence, source)
        return
    ends = f"{cell.scale * prediction.low:.2f} to {cell.scale * prediction.high:.2f}"
    if cell.verdict == "inside":
        sentence = f"{subject}: published {published.as_published} lies inside our prediction interval, {ends}."
        yield Verdict("inside", sentence, f"{source}, mean {mean}; a wide interval contains a value easily")
    else:
        sentence = (
            f"{subject}: published {published.as_published}. Our prediction interval, {ends}, lies {cell.verdict} it."
        )
        yield Verdict("outside", sentence, f"{source}, mean {mean}")
