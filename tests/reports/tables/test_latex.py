"""The width of LaTeX tables."""

import re
from dataclasses import replace

import pytest

from reports.published.join import join
from reports.published.layout import published_layout
from reports.tables.latex import to_latex, to_latex_document
from reports.tables.table import Cell, Column, Row, Table
from results.published.tables import published_table, published_tables
from results.statistics.intervals import Interval
from tests.support.sound_latex import compiled, needs_pdflatex


def filled(name):
    """A published table with an interval of ours in every cell that can have one."""
    empty = join(published_table(name), [])
    rows = [
        replace(
            row,
            cells={
                key: replace(cell, ours=Interval(0.61234, 0.0123, 10), verdict="inside")
                if cell.verdict == "not run"
                else cell
                for key, cell in row.cells.items()
            },
        )
        for row in empty.rows
    ]
    return published_layout(replace(empty, rows=tuple(rows)))


WIDEST = [name for name in published_tables() if len(filled(name).columns) >= 8]


@needs_pdflatex
@pytest.mark.parametrize("name", WIDEST)
def test_a_filled_table_is_not_wider_than_its_page(name, tmp_path):
    assert "Overfull" not in compiled(to_latex_document(filled(name)), tmp_path, times=2)


@pytest.mark.parametrize(("characters", "command"), [(4, ""), (22, r"\scriptsize"), (27, r"\tiny"), (90, r"\tiny")])
def test_wide_cells_get_smaller_type(characters, command):
    columns = tuple(Column(f"c{number}") for number in range(7))
    latex = to_latex(Table("A table", "", columns, (Row.single("a", [Cell("x" * characters)] * 7),)))
    types = re.findall(r"^\\(?:tiny|scriptsize)$", latex, flags=re.M)
    assert types == ([command] if command else [])
    assert latex.index(r"\caption") < latex.index(r"\begin{tabular}")
