"""Published values beside measured ones."""

from dataclasses import replace

from reports.page.build import report_of
from reports.page.sections.published_values import printed_of, printed_verdicts
from tests.support.page_material import material
from tests.support.printed_world import MLRC, changed, runs_of


def test_printed_values_are_inside_or_outside_only_under_the_printed_conditions():
    runs = {"contrastive": runs_of("contrastive", [0.59, 0.60, 0.605])}
    own = material(runs, titles={"contrastive": "Contrastive"}, settings=MLRC, name="mlrc_cub200")
    report = report_of(own)
    kinds = {one.kind for one in report.content.verdicts}
    assert kinds >= {"inside", "outside"}
    table = next(table for table in report.content.tables if "A Metric Learning Reality Check" in table.title)
    printed = next(row for row in table.rows if row.title == "Contrastive, printed")
    assert printed.cells[0].text
    assert {row.title.partition(",")[0] for row in table.rows} == {"Contrastive"}
    assert "printed rows without a run are left out here" in table.caption
    results = report.content.tables[0]
    place = [column.title for column in results.columns].index("P@1")
    assert results.rows[0].cells[place].verdict in ("inside", "outside")
    other = material(runs, settings=changed(MLRC, embedding_size=64, images={"crop": 96})).measured
    elsewhere = replace(own, measured=other)
    found = list(printed_verdicts(printed_of(elsewhere), elsewhere.titles))
    assert {one.kind for one in found} == {"warning"}
    assert "Not compared with A Metric Learning Reality Check" in found[0].sentence
    assert "96 pixels" in found[0].detail
