"""Figures of a page: drawn where there are data, with the reason where they cannot be drawn."""

import base64
import io
from dataclasses import replace

import pytest
from PIL import Image

from reports.page import figures
from reports.page.figures import page_figures
from reports.page.material import Material
from results.findings.experiment import answer_of
from tests.support.measured_experiment import with_trainings
from tests.support.page_material import A, B, C, material, search, values
from tests.support.published_world import MLRC
from tests.support.sample_records import some_plan


def test_figures_are_drawn_where_there_are_data_and_nowhere_else(tmp_path):
    runs = values(a=A, b=B, c=C)
    assert [one.name for one in page_figures(material(runs))] == ["intervals"]
    drawn = list(page_figures(material(runs, searches={"a": search(), "b": search()})))
    assert [one.name for one in drawn] == ["intervals", "search_a_history", "search_b_history"]
    assert drawn[0].save(tmp_path) == ["intervals.svg", "intervals.png", "intervals.pdf"]
    for one in drawn:
        assert one.files["svg"].startswith("<?xml")
        assert one.files["pdf"].startswith(b"%PDF")
        shown = base64.b64decode(one.image.removeprefix("data:image/png;base64,"))
        assert Image.open(io.BytesIO(shown)).size == Image.open(io.BytesIO(one.files["png"])).size


def test_recorded_test_scores_are_drawn_in_the_metric_of_the_papers_code():
    def title(**settings):
        world = with_trainings()
        plan = some_plan(methods=world.plan.titles, settings={**MLRC, **settings})
        drawn = page_figures(Material("some", answer_of(replace(world, plan=plan))))
        return next(one for one in drawn if one.name == "test_curves").title

    assert title() == "Test MAP@R during the trainings"
    assert title(peeking_metric="precision_at_1") == "Test P@1 during the trainings"


def test_an_error_in_a_figure_that_is_no_lack_of_data_is_not_hidden(monkeypatch):
    def broken(*_):
        raise KeyError("x")

    monkeypatch.setattr(figures.score_figures, "interval_plot", broken)
    with pytest.raises(KeyError):
        list(page_figures(material(values(a=A))))
