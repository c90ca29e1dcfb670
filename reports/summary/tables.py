"""The page's tables: results, differences, intervals over classes, peeking, hyperparameters, cost."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reports import drawing
from reports.content import Cell, Column, Download, Table, TableRow
from reports.costs import costs
from reports.differences import differences
from reports.drawing import Drawing
from reports.hyperparameters import hyperparameters
from reports.peeking_table import peeking_table
from reports.printed_layout import draw
from reports.published_tables import PrintedTable
from reports.summary.material import Material, Score
from reports.summary.printed import PrintedValues, printed_values
from reports.tables import table_of
from reports.views import Place, Standing, table_view
from reports.writers import to_csv, to_latex, to_markdown
from results.class_bootstrap import ClassInterval, class_difference, class_interval
from results.intervals import student_t_interval
from results.records import RunRecord

RESAMPLES, RESAMPLES_OF_MANY, MANY_CLASSES = 10_000, 2_000, 1_000
"""Draws of test classes for an interval; fewer where there are so many classes that it would take minutes."""

_NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+")


def tables_of(material: Material, printed: Sequence[PrintedTable]) -> tuple[Table, ...]:
    """All tables that the runs allow, published ones where any cell was run."""
    measured, first = material.measured, material.scores[0]
    made = [_results(material, printed_values(printed))]
    made += [_adapted(draw(one), one.published.name, material) for one in printed if any(c.ours for c in one.cells)]
    if len(material.records) >= 2:
        made.append(_adapted(differences(measured, first.metric, first.variant), "differences", material))
    made += _over_classes(material)
    for draw_one, name in ((peeking_table, "peeking"), (hyperparameters, "hyperparameters"), (costs, "costs")):
        table = _adapted(draw_one(measured), name, material)
        made += [table] if table.rows else []
    return tuple(made)


def _results(material: Material, printed: PrintedValues) -> Table:
    table = table_of(material.measured)
    standings: dict[Place, Standing] = {}
    for row in table.rows:
        for place in row.cells:
            mark = row.marks.get(place, "")
            standings[(row.key, *place)] = Standing("" if mark == "untested" else mark)
    for (key, score), (value, rounding, source) in printed.items():
        number = (key, score.variant, score.metric)
        if number in standings:
            standings[number] = replace(standings[number], printed=value, rounding=rounding, source=source)
    absent = {key: title for key, title in material.titles.items() if key not in material.records}
    records = [run for own in material.records.values() for run in own]
    view = table_view(table, records, standings, absent)
    return Table("Test scores", view.columns, view.rows, view.caption, view.notes, view.first, view.downloads)


def _adapted(drawn: Drawing, name: str, material: Material) -> Table:
    """A drawing as the page shows tables: columns that sort by number, the same files to save.

    Columns that say nothing in any row are left out, rows of several lines become as many rows.
    """
    every = [line for row in drawn.rows for line in row.lines]
    said = [place for place in range(len(drawn.columns)) if any(line.cells[place].text for line in every)]
    columns = tuple(Column(one.name, one.group, one.numeric) for one in (drawn.columns[place] for place in said))
    keys = {title: key for key, title in material.measured.summary["methods"].items()}
    rows = tuple(
        TableRow(
            f"{row.head}, {line.name}" if line.name else row.head,
            tuple(_cell(line.cells[place], column) for place, column in zip(said, columns, strict=True)),
            key=keys.get(row.head, ""),
        )
        for row in drawn.rows
        for line in row.lines
    )
    title = drawn.title.removeprefix(f"{material.measured.summary['title']}: ")
    downloads = (
        Download(f"{name}.csv", "text/csv", to_csv(drawn)),
        Download(f"{name}.md", "text/markdown", to_markdown(drawn)),
        Download(f"{name}.tex", "application/x-tex", to_latex(drawn)),
    )
    notes = (*drawn.notes, *drawn.remarks)
    return Table(title[:1].upper() + title[1:], columns, rows, drawn.caption, notes, drawn.first, downloads)


def _cell(cell: drawing.Cell, column: Column) -> Cell:
    text, sign, half = cell.text.partition(" ± ")
    spread = " ".join(part for part in (f"± {half}" if sign else "", cell.aside) if part)
    if not text:
        return Cell("–" if column.numeric else "", sort="")
    number = _NUMBER.match(text.removeprefix("< ")) if column.numeric else None
    return Cell(text, spread, sort=float(number[0].replace(",", "")) if number else None)


def _over_classes(material: Material) -> list[Table]:
    """Intervals over runs beside intervals over classes, for the methods whose runs kept class scores."""
    score = material.scores[0]
    ordered = {key: material.records[key] for key in material.best_first}
    known = {key: own for key, own in ordered.items() if all(run.class_scores for run in own)}
    if not known:
        return []
    best = next(iter(known))
    resamples = RESAMPLES_OF_MANY if known[best][0].test_classes > MANY_CLASSES else RESAMPLES
    rows = [_class_row(material, key, known, score, resamples) for key in material.titles if key in known]
    classes = class_interval(known[best], score.metric, score.variant, resamples=1).classes
    caption = (
        f"{score.name[:1].upper()}{score.name[1:]} in percent with 95 % intervals. Over runs (Student-t): how far the "
        f"mean moves when everything is trained again and tested on the same classes. Over classes (BCa bootstrap, "
        f"{resamples:,} draws of {classes} test classes): how far it moves with other classes. Last column: the "
        f"difference to {material.titles[best]}, in points, on the same drawn classes."
    )
    columns = (Column("mean"), Column("over runs"), Column("over classes"), Column("below the best, over classes"))
    return [Table("Would other classes say the same?", columns, tuple(rows), caption)]


def _class_row(
    material: Material, key: str, known: Mapping[str, Sequence[RunRecord]], score: Score, resamples: int
) -> TableRow:
    values = list(material.values(score)[key].values())
    runs = student_t_interval(values)
    classes = class_interval(known[key], score.metric, score.variant, resamples=resamples)
    best = next(iter(known))
    behind = None
    if key != best:
        behind = class_difference(known[best], known[key], score.metric, score.variant, resamples=resamples)
    low, high = runs.low, runs.high
    return TableRow(
        material.titles[key],
        (
            Cell(f"{100 * runs.mean:.2f}", sort=runs.mean),
            Cell("one run" if low is None or high is None else _ends(low, high), sort=low if low is not None else ""),
            _class_cell(classes),
            Cell("the best", sort=0.0) if behind is None else _class_cell(behind, mean=True),
        ),
        key=key,
    )


def _class_cell(interval: ClassInterval, *, mean: bool = False) -> Cell:
    if interval.low is None or interval.high is None:
        return Cell("one class", sort="")
    ends = _ends(interval.low, interval.high)
    if not mean:
        return Cell(ends, sort=interval.low)
    return Cell(f"{100 * interval.mean:.2f}", f"({ends})", sort=interval.mean)


def _ends(low: float, high: float) -> str:
    return f"{100 * low:.2f} to {100 * high:.2f}"
