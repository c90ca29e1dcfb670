"""Figures of embeddings: singular values, and the gallery of nearest neighbours."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from reports.figures.embedding_figures import retrieval_gallery, singular_value_spectrum
from reports.figures.style import BLUE, ORANGE, FigureError
from tests.support.page_material import figure_data


def test_spectra_are_shares_from_the_largest():
    figure = singular_value_spectrum({"PA": np.array([1.0, 4.0, 0.0, 5.0]), "NIR": np.array([2.0, 2.0])})
    first, second, *flat = figure.axes[0].lines
    assert first.get_ydata() == pytest.approx([0.5, 0.4, 0.1])
    assert list(first.get_xdata()) == [1, 2, 3]
    assert second.get_ydata() == pytest.approx([0.5, 0.5])
    assert [line.get_ydata()[0] for line in flat] == pytest.approx([1 / 2, 1 / 4])
    for values in ((), (0.0, 0.0), (1.0, -1.0)):
        with pytest.raises(FigureError, match="'PA'"):
            singular_value_spectrum({"PA": np.array(values)})


def pictures(*values):
    """Images of 6 x 5 pixels that show one value each."""
    return np.stack([np.full((6, 5, 3), value, np.uint8) for value in values])


# A query of an easy class, then one of a hard class.
BIRDS = replace(
    figure_data(),
    query_images=pictures(1, 3),
    class_names=np.array(["wren", "gull"]),
    class_scores=np.array([0.9, 0.1]),
    neighbour_images=np.stack([pictures(2, 6), pictures(4, 5)]),
    neighbour_names=np.array([["wren", "wren"], ["tern", "gull"]]),
    correct=np.array([[True, True], [False, True]]),
)


def axes_of(data, queries=2, neighbours=2):
    return retrieval_gallery(data, queries, neighbours).axes[0]


def test_the_gallery_frames_right_and_wrong_by_colour_line_and_sign():
    axes = axes_of(BIRDS)
    order = [int(image.get_array()[0, 0, 0]) for image in axes.images]
    assert order == [3, 4, 5, 1, 2, 6], "hardest first, query first"
    frames = dict(zip(order, axes.patches, strict=True))
    query, wrong, right = frames[3], frames[4], frames[5]
    assert to_hex(wrong.get_edgecolor()) == ORANGE.lower()
    assert to_hex(right.get_edgecolor()) == BLUE.lower()
    assert wrong.get_linestyle() != right.get_linestyle()
    assert wrong.get_capstyle() == "butt", "other ends fill the gaps of a dashed line"
    texts = [text.get_text() for text in axes.texts]
    assert texts[:9] == ["query", "1", "2", "MAP@R 10.0 %", "gull", "tern", "✗", "gull", "✓"]
    marked = [text for text in axes.texts if text.get_text() in "✗✓"]
    for mark, frame in zip(marked, (wrong, right, frames[2], frames[6]), strict=True):
        assert frame.get_bbox().contains(*mark.get_position())
    assert query.get_bbox().x0 == frames[1].get_bbox().x0
    assert query.get_bbox().y1 < frames[1].get_bbox().y0, "rows do not overlap"


def test_queries_and_neighbours_can_be_limited_and_grey_images_are_taken():
    assert len(axes_of(figure_data()).images) == 6, "grey images have a last axis of one"
    assert [int(image.get_array()[0, 0, 0]) for image in axes_of(BIRDS, 1, 1).images] == [1, 2]
    with pytest.raises(FigureError, match="at least one query"):
        axes_of(replace(BIRDS, query_images=BIRDS.query_images[:0]))
