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
from tests.support.page_material import exhibit


def picture(value):
    return np.full((6, 5, 3), value, dtype=np.uint8)


EASY = Retrieval(picture(1), "wren", 0.9, (Neighbour(picture(2), "wren"),))
HARD = Retrieval(picture(3), "gull", 0.1, (Neighbour(picture(4), "tern"), Neighbour(picture(5), "gull")))


def test_the_hardest_class_comes_first():
    assert hardest_first([EASY, HARD]) == [HARD, EASY]


def test_the_gallery_frames_right_and_wrong_by_colour_line_and_sign():
    figure = retrieval_gallery([EASY, HARD])
    query, wrong, right, *second_row = figure.axes
    assert [axes.images[0].get_array()[0, 0, 0] for axes in (query, wrong, right)] == [3, 4, 5]
    looks = [
        (to_hex(axes.spines["left"].get_edgecolor()), axes.spines["left"].get_linestyle(), axes.texts[0].get_text())
        for axes in (wrong, right)
    ]
    assert looks[0][0] == ORANGE.lower()
    assert looks[1][0] == BLUE.lower()
    assert looks[0][1] != looks[1][1]
    assert wrong.spines["left"].get_capstyle() == "butt", "other ends fill the gaps of a dashed line"
    assert (looks[0][2], looks[1][2]) == ("✗", "✓")
    assert len(query.texts) == 0
    assert query.get_ylabel() == "MAP@R 10.0 %"
    assert [axes.get_xlabel() for axes in (query, wrong, right)] == ["gull", "tern", "gull"]
    assert not second_row[2].axison, "a row of fewer neighbours ends early"


def test_the_gallery_takes_grey_images_and_refuses_floats():
    grey = Retrieval(np.zeros((4, 4), dtype=np.uint8), "a", 0.5, (Neighbour(np.zeros((4, 4), dtype=np.uint8), "a"),))
    assert len(retrieval_gallery([grey]).axes) == 2
    bad = Retrieval(np.zeros((4, 4)), "a", 0.5, grey.neighbours)
    with pytest.raises(FigureError, match="not float64 of shape"):
        retrieval_gallery([bad])
    with pytest.raises(FigureError, match="at least one query"):
        retrieval_gallery([])


def test_the_retrievals_of_an_exhibit_can_be_limited():
    shown = exhibit()
    (first, second) = retrievals_of(shown)
    assert (first.class_name, second.class_name) == ("<b>x</b>", "y")
    assert first.image.shape == (16, 16), "a grey image has no last axis"
    assert [neighbour.class_name for neighbour in first.neighbours] == ["<b>x</b>", "y"]
    ((neighbour,),) = [row.neighbours for row in retrievals_of(shown, queries=1, neighbours=1)]
    np.testing.assert_array_equal(neighbour.image, shown.neighbour_images[0, 0, ..., 0])


def test_galleries_stand_beside_each_other_under_their_titles():
    figure = galleries_side_by_side({"birds": [EASY, HARD], "more": [EASY]})
    assert [part.get_suptitle() for part in figure.subfigs] == ["birds", "more"]
    assert [len(part.axes) for part in figure.subfigs] == [2 * 3, 2]
    with pytest.raises(FigureError, match="at least one gallery"):
        galleries_side_by_side({})
    with pytest.raises(FigureError, match="at least one query"):
        galleries_side_by_side({"empty": []})
