"""The critical difference diagram: ranks, groups, names that do not overlap."""

import re

import pytest

from reports.figures.critical_difference import critical_difference_diagram
from tests.support.sample_page import measured

RANKS = {"D": 4.0, "A": 1.2, "C": 3.0, "B": 1.8}


def bars(axes):
    lines = [line for line in axes.lines if line.get_linewidth() == 2.5]
    return [(round(min(line.get_xdata()), 1), round(max(line.get_xdata()), 1)) for line in lines]


def test_the_critical_difference_diagram_places_methods_at_their_ranks():
    figure = critical_difference_diagram(RANKS, "10 matched runs", [("B", "C"), ("A", "B")])
    axes = figure.axes[0]
    elbows = sorted(line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 3)
    assert elbows == pytest.approx(sorted(RANKS.values()))
    assert bars(axes) == [(1.2, 1.8), (1.8, 3.0)]
    texts = {text.get_text() for text in axes.texts}
    assert {"A  1.20", "B  1.80", "3.00  C", "4.00  D"} <= texts
    assert "10 matched runs" in figure.get_supxlabel()


def test_a_bar_has_a_dot_for_every_method_of_its_group_and_for_no_other():
    axes = critical_difference_diagram(RANKS, "x", groups=[("A", "C", "D")]).axes[0]
    assert bars(axes) == [(1.2, 4.0)]
    (dots,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert sorted(dots.get_xdata()) == [1.2, 3.0, 4.0], "B lies between them and is not in the group"


def test_names_of_many_ranked_methods_do_not_overlap():
    titles = measured("all_methods_glyphs").summary.methods.values()
    figure = critical_difference_diagram({title: 1.0 + i for i, title in enumerate(titles)}, "104 classes", [])
    figure.draw_without_rendering()
    names = [text for text in figure.axes[0].texts if re.search(r"\d\.\d\d", text.get_text())]
    boxes = [text.get_window_extent() for text in names]
    assert len(boxes) == len(titles)
    for at, one in enumerate(boxes):
        assert one.x0 >= 0
        assert one.x1 <= figure.bbox.x1
        assert not any(one.overlaps(two) for two in boxes[at + 1 :])
