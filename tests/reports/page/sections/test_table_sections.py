"""The tables of a page."""

from reports.page.material import Material
from reports.page.sections.class_intervals import over_classes
from reports.page.sections.table_sections import tables_of
from reports.page.sections.verdicts import verdicts_of
from tests.support.page_material import said
from tests.support.sample_page import measured


def test_the_quickstarts_tables_agree_with_one_another():
    experiment = measured()
    known = Material("quickstart", experiment)
    tables = {section.table.title: section.table for section in tables_of(known, (), over_classes(known))}
    assert list(tables)[:2] == ["Test scores", "Is the difference real?"]
    pairs = tables["Is the difference real?"]
    yes = [row.head for row in pairs.rows if str(row.lines[0].cells[-1].value).endswith(" better")]
    real = said(verdicts_of(known), "real")
    assert len(yes) == len(real)
    assert all(isinstance(line.cells[0].sort_key, float) for line in pairs.lines)
    assert "MLRC" not in [column.name for column in tables["Hyperparameters found"].columns], "an empty column"
    links = [row.key for row in tables["Cost of the methods"].rows]
    assert links == list(experiment.summary.methods)
