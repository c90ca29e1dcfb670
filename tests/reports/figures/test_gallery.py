"""The retrieval gallery of queries and their nearest neighbours."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from reports.figures.gallery import (
    Neighbour,
    Retrieval,
    galleries_side_by_side,
    hardest_first,
    retrieval_gallery,
    retrievals_of,
)
from reports.figures.style import BLUE, ORANGE, FigureError
from tests.support.page_material import figure_data


def picture(value):
    return np.full((6, 5, 3), value, dtype=np.uint8)


EASY = Retrieval(picture(1), "wren", 0.9, (Neighbour(picture(2), "wren", True),))
HARD = Retrieval(picture(3), "gull", 0.1, (Neighbour(picture(4), "tern", False), Neighbour(picture(5), "gull", True)))


def test_the_hardest_class_comes_first():
    assert hardest_first([EASY, HARD]) == [HARD, EASY]


def test_the_gallery_frames_right_and_wrong_by_colour_line_and_sign():
    (axes,) = retrieval_gallery([EASY, HARD]).axes
    assert [image.get_array()[0, 0, 0] for image in axes.images] == [3, 4, 5, 1, 2], "hardest first, query first"
    frames = dict(zip((3, 4, 5, 1, 2), axes.patches, strict=True))
    query, wrong, right = frames[3], frames[4], frames[5]
    assert to_hex(wrong.get_edgecolor()) == ORANGE.lower()
    assert to_hex(right.get_edgecolor()) == BLUE.lower()
    assert wrong.get_linestyle() != right.get_linestyle()
    assert wrong.get_capstyle() == "butt", "other ends fill the gaps of a dashed line"
    texts = [text.get_text() for text in axes.texts]
    assert texts[:3] == ["query", "1", "2"]
    assert texts[3:] == ["MAP@R 10.0 %", "gull", "tern", "✗", "gull", "✓", "MAP@R 90.0 %", "wren", "wren", "✓"]
    marked = [text for text in axes.texts if text.get_text() in "✗✓"]
    for mark, frame in zip(marked, (wrong, right, frames[2]), strict=True):
        assert frame.get_bbox().contains(*mark.get_position())
    assert query.get_bbox().x0 == frames[1].get_bbox().x0
    assert query.get_bbox().y1 < frames[1].get_bbox().y0, "rows do not overlap"


def test_images_keep_their_shape_and_lie_in_their_frames():
    (axes,) = retrieval_gallery([HARD]).axes
    for image, frame in zip(axes.images, axes.patches, strict=True):
        left, right, bottom, top = image.get_extent()
        assert (right - left) / (bottom - top) == pytest.approx(5 / 6)
        assert frame.get_bbox().bounds == pytest.approx((left, top, right - left, bottom - top))


def test_the_gallery_takes_grey_images_and_refuses_floats():
    grey = Retrieval(
        np.zeros((4, 4), dtype=np.uint8), "a", 0.5, (Neighbour(np.zeros((4, 4), dtype=np.uint8), "a", True),)
    )
    assert len(retrieval_gallery([grey]).axes[0].images) == 2
    bad = Retrieval(np.zeros((4, 4)), "a", 0.5, grey.neighbours)
    with pytest.raises(FigureError, match="not float64 of shape"):
        retrieval_gallery([bad])
    with pytest.raises(FigureError, match="at least one query"):
        retrieval_gallery([])


def test_the_retrievals_of_an_exhibit_can_be_limited():
    shown = figure_data()
    (first, second) = retrievals_of(shown)
    assert (first.class_name, second.class_name) == ("<b>x</b>", "y")
    assert first.image.shape == (16, 16), "a grey image has no last axis"
    assert [neighbour.class_name for neighbour in first.neighbours] == ["<b>x</b>", "y"]
    ((neighbour,),) = [row.neighbours for row in retrievals_of(shown, queries=1, neighbours=1)]
    np.testing.assert_array_equal(neighbour.image, shown.neighbour_images[0, 0, ..., 0])


def test_galleries_stand_beside_each_other_under_their_titles():
    figure = galleries_side_by_side({"birds": [EASY, HARD], "more": [EASY]})
    assert [part.get_suptitle() for part in figure.subfigs] == ["birds", "more"]
    assert [len(part.axes[0].images) for part in figure.subfigs] == [5, 2]
    with pytest.raises(FigureError, match="at least one query"):
        galleries_side_by_side({})
    with pytest.raises(FigureError, match="at least one query"):
        galleries_side_by_side({"empty": []})
