"""The page's table of test scores: results, with single runs and published values in tooltips."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reports.page.sections.published_values import PublishedValue
from reports.tables.result_table import RESULT_COLUMNS, ResultColumn, result_cells
from reports.tables.table import Cell, Row, Table
from results.headline_metrics import HEADLINE_METRICS
from results.records import RunRecord
from results.statistics.intervals import Interval
from results.statistics.nested_runs import by_search
from results.statistics.published_verdict import published_verdict
from results.statistics.run_values import values_by_run


def scores_table(
    results: Table,
    records: Sequence[RunRecord],
    published: Mapping[tuple[str, ResultColumn], PublishedValue] | None = None,
    absent: Mapping[str, str] | None = None,
) -> Table:
    """Build the table of results for the page.

    Args:
        results: The table that `result_table` makes.
        records: The runs of the table.
        published: Published values by method and column. A cell gets a verdict if our runs or the
            paper show how much runs vary.
        absent: Titles by key of methods without runs. Their rows have the words "not run".

    Returns:
        The table with a tooltip in every cell.
    """
    rows = []
    for row in results.rows:
        runs = [record for record in records if record.method == row.key]
        cells = [
            _cell(row.head, column, cell, runs, (published or {}).get((row.key, column)))
            for column, cell in result_cells(row).items()
        ]
        rows.append(Row.single(row.head, (Cell(len(runs)), *cells), row.key, row.sign))
    not_run = [Cell(kind="not run") for _ in RESULT_COLUMNS]
    rows += [Row.single(title, (Cell(0), *not_run), key) for key, title in (absent or {}).items()]
    return replace(results, title="Test scores", rows=tuple(rows))


def _cell(
    title: str, column: ResultColumn, cell: Cell, runs: Sequence[RunRecord], published: PublishedValue | None
) -> Cell:
    kind, metric = column
    by_run = values_by_run(runs, metric, kind).get(runs[0].method, {})
    values, searches = list(by_run.values()), list(by_search(by_run).values())
    interval = Interval(float(cell.value or 0), cell.half_width, len(runs))
    sentences = [
        f"{title}, {kind} {HEADLINE_METRICS[metric]}",
        f"runs: {', '.join(f'{100 * value:.2f}' for value in values)}",
    ]
    if interval.low is not None and interval.high is not None:
        ends = f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"
        sentences.append(f"95 % Student-t interval: {ends}, n = {interval.n}")
    else:
        sentences.append("one run: no interval")
    if published is None:
        return replace(cell, tooltip="\n".join(sentences))
    source = f" ({published.source})" if published.source else ""
    sentences.append(f"published: {100 * published.value:.2f}{source}")
    comparison = published_verdict(searches, published.mean)
    return replace(cell, tooltip="\n".join(sentences), verdict=comparison)
