"""The tables of a page."""

from reports.page.material import Material
from reports.page.sections.class_intervals import over_classes
from reports.page.sections.pair_matrix import pair_matrix
from reports.page.sections.table_sections import MOST_METHODS, tables_of
from reports.tables.result_table import result_cells
from tests.support.page_material import A, material, searched, values, with_classes
from tests.support.sample_page import measured


def test_the_quickstarts_tables_agree_with_one_another():
    experiment = measured()
    known = Material("quickstart", experiment)
    tables = {section.table.title: section.table for section in tables_of(known, (), over_classes(known))}
    assert list(tables)[:2] == ["Test scores", "Is the difference real?"]
    pairs = tables["Is the difference real?"]
    place = [column.name for column in pairs.columns].index("verdict")
    verdicts = [row.lines[0].cells[place].value for row in pairs.rows]
    assert verdicts == ["search not known"] * 10
    assert {cell.kind for cell in pair_matrix(known).cells} == {"untested"}
    assert all(isinstance(line.cells[0].sort_key, float) for line in pairs.lines)
    assert "MLRC" not in [column.name for column in tables["Hyperparameters found"].columns], "an empty column"
    links = [row.key for row in tables["Cost of the methods"].rows]
    assert links == list(experiment.summary.methods)


def test_scores_of_repeated_searches_name_the_searches():
    world = searched(reproductions=2, a=(30, 31, 32), b=(20, 21, 22))
    cell = result_cells(tables_of(world, (), None)[0].table.rows[0])["concatenated", "map_at_r"]
    assert "searches: 30.00, 31.00, 32.00" in cell.tooltip
    assert "over 3 searches" in cell.tooltip


def test_of_many_methods_the_pairs_with_the_best_one_are_rows():
    runs = {f"m{n}": [value - 0.001 * n for value in A] for n in range(MOST_METHODS + 1)}
    runs = {key: with_classes(own, [0.01, -0.01, 0.02, -0.02]) for key, own in values(**runs).items()}
    tables = {section.part: section for section in tables_of(material(runs), (), None)}
    doubt = tables["doubt"]
    assert [row.head for row in doubt.table.rows] == [f"M0 − M{n + 1}" for n in range(MOST_METHODS)]
    assert len(doubt.downloads[0].text.splitlines()) == 1 + (MOST_METHODS + 1) * MOST_METHODS // 2
    assert "The files have all 55 pairs." in doubt.table.caption
