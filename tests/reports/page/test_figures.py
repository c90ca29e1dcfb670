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
from tests.support.sample_records import some_summary

EQUAL = np.ones((40, 8), np.float32)
COLLAPSED = replace(figure_data(), test_embeddings=EQUAL)


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
        *("tsne_test_a", "tsne_test_b", "spectrum", "gallery_a", "gallery_b"),
    ]
    asked = comparing("b", {**MLRC, "methods": ["a", "b", "c"]})
    names = [one.name for one in page_figures(material(runs, settings=asked, figure_data=whole.figure_data))]
    assert [name for name in names if name.startswith("tsne")] == ["tsne_test_b", "tsne_test_a"]
    for one in drawn:
        assert one.files["svg"].startswith("<?xml")
        assert one.files["pdf"].startswith(b"%PDF")
        shown = base64.b64decode(one.image.removeprefix("data:image/png;base64,"))
        assert Image.open(io.BytesIO(shown)).size == Image.open(io.BytesIO(one.files["png"])).size


def test_maps_of_a_collapsed_model_say_so_and_those_of_other_models_are_drawn(tmp_path):
    world = material(values(a=A, b=B), figure_data={"a": COLLAPSED, "b": figure_data()})
    drawn = {figure.name: figure for figure in page_figures(world)}
    collapsed = drawn["tsne_test_a"]
    assert collapsed.caption.startswith("This figure cannot be drawn: all embeddings are equal: the model has")
    assert (collapsed.image, collapsed.save(tmp_path)) == ("", [])
    assert drawn["tsne_test_b"].save(tmp_path) == ["tsne_test_b.svg", "tsne_test_b.png", "tsne_test_b.pdf"]
    zero = replace(COLLAPSED, spectrum=np.zeros(8, np.float32))
    (spectrum,) = [f for f in page_figures(material(values(a=A), figure_data={"a": zero})) if f.name == "spectrum"]
    assert spectrum.caption.startswith("This figure cannot be drawn: the spectrum of 'A' needs")


def test_recorded_test_scores_are_drawn_in_the_metric_of_the_papers_code():
    def title(**settings):
        world = with_trainings()
        summary = some_summary(methods=world.summary.methods, settings={**MLRC, **settings})
        drawn = page_figures(Material("some", answer_of(replace(world, summary=summary))))
        return next(one for one in drawn if one.name == "test_curves").title

    assert title() == "Test MAP@R during the trainings"
    assert title(peeking_metric="precision_at_1") == "Test P@1 during the trainings"


def test_an_error_in_a_figure_that_is_no_lack_of_data_is_not_hidden(monkeypatch):
    def broken(*_):
        raise KeyError("x")

    monkeypatch.setattr(figures.score_figures, "interval_plot", broken)
    with pytest.raises(KeyError):
        list(page_figures(material(values(a=A))))
