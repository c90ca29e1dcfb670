"""Published values beside measured ones."""

import re
from dataclasses import replace

from reports.page.build import build_page
from reports.page.render import render_page
from reports.page.sections.published_values import compared_tables, published_verdicts
from reproduce.config.deviations import mlrc_experiment
from tests.support.page_material import material
from tests.support.published_world import MLRC, changed, runs_of


def test_published_values_are_inside_or_outside_only_under_the_published_conditions():
    runs = {"contrastive": runs_of("contrastive", [0.59, 0.60, 0.605])}
    own = material(runs, titles={"contrastive": "Contrastive"}, settings=MLRC, name="mlrc_cub200")
    own = replace(own, mlrc=mlrc_experiment("cub200"))
    report = build_page(own)
    kinds = {one.kind for one in report.content.verdicts}
    assert kinds >= {"inside", "outside"}
    first, *others = [figure for figure in report.content.figures if figure.part == "papers"]
    assert first.title.endswith("concatenated MAP@R")
    assert not first.fold
    assert len(others) == 5
    assert {figure.fold for figure in others} == {f"Other scores of {first.title.rpartition(':')[0]}"}
    assert re.search(r"Contrastive 26.53, ours \d\d.\d\d, predicted", first.alt)
    papers = render_page(report.content).split('<section id="papers"')[1].split("</section>")[0]
    assert papers.count("<figure") == 6
    table = next(
        section.table for section in report.content.tables if "A Metric Learning Reality Check" in section.table.title
    )
    published = next(row for row in table.rows if row.head == "Contrastive, published")
    assert published.lines[0].cells[0].value == 68.13
    assert {row.head.partition(",")[0] for row in table.rows} == {"Contrastive"}
    assert {row.key for row in table.rows} == {"contrastive"}
    assert "published rows without runs are left out here" in table.caption
    results = report.content.tables[0].table
    place = [column.name for column in results.columns].index("P@1")
    assert results.rows[0].lines[0].cells[place].verdict == "inside"
    other = material(runs, settings=changed(MLRC, embedding_size=64, images={"crop": 96})).measured
    elsewhere = replace(own, measured=other)
    found = list(published_verdicts(compared_tables(elsewhere), elsewhere.titles))
    assert {one.kind for one in found} == {"warning"}
    assert not [figure for figure in build_page(elsewhere).content.figures if figure.part == "papers"]
    assert "Not compared with A Metric Learning Reality Check" in found[0].sentence
    assert "96 pixels" in found[0].detail
