"""Figures of a page: drawn where there are data, with the reason where they cannot be drawn."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from reports.page import figures
from reports.page.figures import page_figures
from reports.page.material import Material
from results.findings.experiment import answer_of
from tests.support.measured_experiment import with_trainings
from tests.support.page_material import A, B, C, comparing, figure_data, material, search, values
from tests.support.published_world import MLRC
from tests.support.sample_records import some_plan


def test_figures_are_drawn_where_there_are_data_and_nowhere_else():
    runs = values(a=A, b=B, c=C)
    assert [one.name for one in page_figures(material(runs))] == ["intervals"]
    whole = material(
        runs,
        figure_data={"a": figure_data(), "b": figure_data()},
        searches={"a": search(), "b": search()},
    )
    drawn = list(page_figures(whole))
    assert [one.name for one in drawn] == [
        *("intervals", "search_a_history", "search_b_history"),
        *("spectrum", "gallery_a", "gallery_b"),
    ]
    asked = comparing("b", {**MLRC, "methods": ["a", "b", "c"]})
    names = [one.name for one in page_figures(material(runs, settings=asked, figure_data=whole.figure_data))]
    assert [name for name in names if name.startswith("gallery")] == ["gallery_b", "gallery_a"]
    for one in drawn:
        assert one.files["svg"].startswith("<?xml")
        assert one.files["pdf"].startswith(b"%PDF")
        shown = base64.b64decode(one.image.removeprefix("data:image/png;base64,"))
        assert Image.open(io.BytesIO(shown)).size == Image.open(io.BytesIO(one.files["png"])).size


def test_a_figure_that_cannot_be_drawn_says_so_and_the_others_are_drawn(tmp_path):
    zero = replace(figure_data(), spectrum=np.zeros(8, np.float32))
    drawn = {figure.name: figure for figure in page_figures(material(values(a=A), figure_data={"a": zero}))}
    spectrum = drawn["spectrum"]
    assert spectrum.caption.startswith("This figure cannot be drawn: the spectrum of 'A' needs")
    assert (spectrum.image, spectrum.save(tmp_path)) == ("", [])
    assert drawn["gallery_a"].save(tmp_path) == ["gallery_a.svg", "gallery_a.png", "gallery_a.pdf"]


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
