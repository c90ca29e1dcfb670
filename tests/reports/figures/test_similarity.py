"""The heat map of cosine similarities."""

import numpy as np
import pytest

from reports.figures.similarity import SimilarityPanel, similarity_heat_map
from reports.figures.style import FigureError


def test_similarities_are_cosines_sorted_by_class():
    embeddings = np.array([[0.0, 2.0], [3.0, 0.0], [1.0, 1.0]])
    panel = SimilarityPanel("A", embeddings, np.array([1, 0, 1]), np.array([[0.0, -5.0], [2.0, 0.0]]), np.array([1, 0]))
    half = 1 / np.sqrt(2)
    assert panel.similarities == pytest.approx(np.array([[1, 0], [0, -1], [half, -half]]))
    figure = similarity_heat_map([panel], 1)
    image = figure.axes[0].images[0]
    np.testing.assert_allclose(image.get_array(), panel.similarities)
    assert image.get_clim() == (-1.0, 1.0)
    frames = [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in figure.axes[0].patches]
    assert frames == [(-0.5, -0.5, 1, 1), (0.5, 0.5, 1, 2)]
    assert figure.axes[0].get_xlabel() == "proxy, by class (n = 2)"
    assert figure.axes[0].get_ylabel() == "image, by class (n = 3)"


def test_panels_of_similarities_have_one_scale():
    eye = np.eye(3)
    first = SimilarityPanel("A", eye, np.arange(3), eye, np.arange(3))
    second = SimilarityPanel("B", eye, np.arange(3), 1 - eye, np.arange(3))
    figure = similarity_heat_map([first, second], 2)
    assert {axes.images[0].get_clim() for axes in figure.axes[:2]} == {(-1.0, 1.0)}
    assert figure.axes[2].get_ylabel() == "cosine similarity"


def test_similarities_refuse_shapes_that_do_not_fit():
    with pytest.raises(FigureError, match="'A': needs one label per embedding"):
        similarity_heat_map([SimilarityPanel("A", np.eye(3), np.arange(2), np.eye(3), np.arange(3))], 1)
