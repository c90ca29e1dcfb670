"""The critical difference diagram: ranks, groups, names that do not overlap."""

import pytest

from reports.figures.critical_difference import critical_difference_diagram, groups_of
from tests.support.sample_page import measured

RANKS = {"D": 4.0, "A": 1.2, "C": 3.0, "B": 1.8}


def test_groups_are_the_largest_sets_within_the_critical_difference():
    assert groups_of(RANKS, 1.3) == [("A", "B"), ("B", "C"), ("C", "D")]
    assert groups_of(RANKS, 2.3) == [("A", "B", "C"), ("B", "C", "D")]
    assert groups_of(RANKS, 0.1) == []
    assert groups_of(RANKS, 9.0) == [("A", "B", "C", "D")]


def test_the_critical_difference_diagram_places_methods_at_their_ranks():
    figure = critical_difference_diagram(RANKS, 1.3, "10 matched runs")
    axes = figure.axes[0]
    elbows = sorted(line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 3)
    assert elbows == pytest.approx(sorted(RANKS.values()))
    ruler = next(line for line in axes.lines if len(line.get_xdata()) == 6)
    assert max(ruler.get_xdata()) - min(ruler.get_xdata()) == pytest.approx(1.3)
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 4]
    assert [(round(min(ends), 1), round(max(ends), 1)) for ends in bars] == [(1.2, 1.8), (1.8, 3.0), (3.0, 4.0)]
    texts = {text.get_text() for text in axes.texts}
    assert {"A  1.20", "B  1.80", "3.00  C", "4.00  D", "CD = 1.30"} <= texts
    assert "10 matched runs" in figure.get_supxlabel()


def test_groups_of_another_test_are_taken_as_given():
    axes = critical_difference_diagram(RANKS, 1.3, "x", groups=[("A", "D")]).axes[0]
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 4]
    assert [(round(min(ends), 1), round(max(ends), 1)) for ends in bars] == [(1.2, 4.0)]


def test_names_of_many_ranked_methods_do_not_overlap():
    titles = measured("all_methods_glyphs").summary.methods.values()
    figure = critical_difference_diagram({title: 1.0 + i for i, title in enumerate(titles)}, 8.0, "104 classes")
    figure.draw_without_rendering()
    names = [text for text in figure.axes[0].texts if "  " in text.get_text()]
    boxes = [text.get_window_extent() for text in names]
    assert len(boxes) == len(titles)
    for at, one in enumerate(boxes):
        assert one.x0 >= 0
        assert one.x1 <= figure.bbox.x1
        assert not any(one.overlaps(two) for two in boxes[at + 1 :])
