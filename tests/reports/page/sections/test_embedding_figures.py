"""Figures of a collapsed model: they say why they cannot be drawn, and the page is written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.figures.embedding_map import tsne_places
from reports.figures.style import UndrawableError
from reports.page.build import build_page
from reports.page.render import render_page
from reports.page.sections.embedding_figures import embedding_figures, map_figures
from tests.support.page_material import A, B, figure_data, material, values

EQUAL = np.ones((40, 8), np.float32)
COLLAPSED = replace(figure_data(), test_embeddings=EQUAL, train_embeddings=EQUAL, proxies=EQUAL[:4])


@pytest.mark.parametrize("points", [EQUAL, 0 * EQUAL, EQUAL * np.arange(1, 41)[:, None], EQUAL + 1e-14])
def test_equal_embeddings_end_no_process(points):
    with pytest.raises(UndrawableError, match="all embeddings are equal: the model has collapsed"):
        tsne_places(points)


def test_nearly_equal_embeddings_are_drawn():
    nearly = EQUAL + 1e-5 * np.random.default_rng(0).normal(size=EQUAL.shape)
    assert np.isfinite(tsne_places(nearly)[0]).all()


def test_maps_of_a_collapsed_model_say_so_and_those_of_other_models_are_drawn(tmp_path):
    drawn = list(map_figures(material(values(a=A, b=B), figure_data={"a": COLLAPSED, "b": figure_data()})))
    captions = {figure.name: figure.view.caption for figure in drawn}
    assert captions["tsne_test_a"] == (
        "This figure cannot be drawn: all embeddings are equal: the model has collapsed, and t-SNE has nothing to "
        "spread out."
    )
    assert captions["tsne_proxies_a"] == captions["tsne_test_a"]
    assert {figure.name for figure in drawn if figure.svg} == {"tsne_test_b", "tsne_proxies_b"}
    for figure in drawn:
        figure.save(tmp_path)
    assert {path.name for path in Path(tmp_path).glob("*_a.*")} == set()


def test_a_spectrum_without_a_positive_value_says_so():
    zero = replace(COLLAPSED, spectrum=np.zeros(8, np.float32))
    (spectrum,) = [f for f in embedding_figures(material(values(a=A), figure_data={"a": zero})) if f.name == "spectrum"]
    assert spectrum.view.caption.startswith("This figure cannot be drawn: the spectrum of 'A' needs")


def test_the_page_of_a_collapsed_model_is_whole():
    built = build_page(material(values(a=A), figure_data={"a": COLLAPSED}))
    text = render_page(built.content)
    assert "This figure cannot be drawn: all embeddings are equal" in text
    assert 'src=""' not in text
