"""The page's tables: results, differences, intervals over classes, peeking, hyperparameters, cost."""

import re
from collections.abc import Sequence
from dataclasses import replace

from reports.page.content import Cell, Column, Download, Table, TableRow
from reports.page.material import Material
from reports.page.sections.class_intervals import OverClasses, classes_table
from reports.page.sections.origins import Place, Standing, table_view
from reports.page.sections.published_values import PrintedValues, printed_values
from reports.published.join import PrintedTable
from reports.published.layout import draw
from reports.tables import table as drawing
from reports.tables.costs import costs
from reports.tables.differences import differences
from reports.tables.formats import to_csv, to_latex, to_markdown
from reports.tables.hyperparameters import hyperparameters
from reports.tables.peeking import peeking_table
from reports.tables.result_table import table_of
from reports.tables.table import Drawing

_NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+")


def tables_of(material: Material, printed: Sequence[PrintedTable], classes: OverClasses | None) -> tuple[Table, ...]:
    """All tables that the runs allow, published ones where any cell was run."""
    measured, first = material.measured, material.scores[0]
    made = [_results(material, printed_values(printed))]
    made += [_printed(one, material) for one in printed if any(cell.ours for cell in one.cells)]
    if len(material.records) >= 2:
        made.append(_adapted(differences(measured, first.metric, first.variant), "differences", material))
    made += [classes_table(material, classes)] if classes else []
    further = {
        "peeking": peeking_table(measured),
        "hyperparameters": hyperparameters(measured, material.printed_names),
        "costs": costs(measured),
    }
    made += [_adapted(drawn, name, material) for name, drawn in further.items() if drawn.rows]
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


def _printed(table: PrintedTable, material: Material) -> Table:
    """The published table's rows that were run."""
    run = tuple(row for row in table.rows if any(cell.ours for cell in row.cells.values()))
    drawn = draw(replace(table, rows=run))
    left_out = len(table.rows) - len(run)
    said = f" {left_out} printed rows without a run are left out here." if left_out else ""
    return _adapted(replace(drawn, caption=drawn.caption + said), table.published.name, material)


def _adapted(drawn: Drawing, name: str, material: Material) -> Table:
    """A drawing as the page shows tables: columns that sort by number, the same files to save.

    Columns that say nothing in any row are left out, rows of several lines become as many rows.
    """
    every = [line for row in drawn.rows for line in row.lines]
    said = [place for place in range(len(drawn.columns)) if any(line.cells[place].text for line in every)]
    columns = tuple(Column(one.name, one.group, one.numeric) for one in (drawn.columns[place] for place in said))
    keys = {title: key for key, title in material.measured.summary.methods.items()}
    rows = tuple(
        TableRow(
            f"{row.head}, {line.name}" if line.name else row.head,
            tuple(_cell(line.cells[place], column) for place, column in zip(said, columns, strict=True)),
            key=keys.get(row.head, ""),
        )
        for row in drawn.rows
        for line in row.lines
    )
    title = drawn.title.removeprefix(f"{material.measured.summary.title}: ")
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
