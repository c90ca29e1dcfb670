"""Scores against a number."""

import pytest

from reports.figures.dependence import DependencePanel, dependence_plot
from reports.figures.style import FigureError
from tests.support.drawn import HALF, RUNS, legend_texts, line, lines_labelled


def panel(*series, title="CUB", scale="log2", parameter="batch size"):
    return DependencePanel(title, parameter, series, scale)


def ticks(axes):
    return [text.get_text() for text in axes.get_xticklabels()]


def test_numbers_stand_at_their_logarithms_with_intervals():
    plain, with_ccp = line("C2", {16: RUNS, 64: (0.7,)}), line("C2-CCP", {64: RUNS})
    figure = dependence_plot([panel(plain), panel(plain, with_ccp, title="Cars")])
    cub, cars = figure.axes
    assert ticks(cub) == ["16", "64"]
    drawn = cub.containers[0].lines[0]
    assert drawn.get_ydata() == pytest.approx([55, 70])
    assert drawn.get_xdata() == pytest.approx([4, 6], abs=0.1), "the logarithms to base 2"
    segments = cub.containers[0].lines[2][0].get_segments()
    assert segments[0][:, 1] == pytest.approx([55 - 100 * HALF, 55 + 100 * HALF])
    assert segments[1].size == 0, "one run has no interval"
    assert cub.get_xlabel() == "batch size"
    assert figure.get_supxlabel() == "mean and 95 % interval, n = 1 to 3 runs"
    assert legend_texts(figure) == ["C2", "C2-CCP"]
    assert cars.containers[0].lines[0].get_color() == drawn.get_color()
    assert cars.containers[1].lines[0].get_color() != drawn.get_color()


def test_repeated_searches_are_counted_as_such():
    figure = dependence_plot([panel(line("C2", {16: RUNS}, unit="search"))])
    assert figure.get_supxlabel() == "mean and 95 % interval, n = 3 searches"


def test_single_runs_are_points_if_there_are_few():
    axes = dependence_plot([panel(line("few", {1: RUNS, 2: (0.5,) * 6}))]).axes[0]
    points = [one for one in axes.lines if one.get_marker() == "."]
    assert [list(one.get_ydata()) for one in points] == [pytest.approx([50, 54, 61])]


def test_published_scores_are_hollow_markers_beside_the_runs():
    figure = dependence_plot([panel(line("r = 1", {1: RUNS}, {1: 0.5, 4: 0.6}))])
    (hollow,) = lines_labelled(figure.axes[0], "_published")
    assert list(hollow.get_ydata()) == [50, 60]
    assert hollow.get_markerfacecolor() == "white"
    assert ticks(figure.axes[0]) == ["1", "4"], "a published number without a run is on the axis too"
    assert legend_texts(figure) == ["r = 1", "published"]


def test_steps_put_numbers_at_equal_distances():
    steps = dependence_plot([panel(line("", {0.01: RUNS, 0.1: RUNS, 5: RUNS}), scale="steps")]).axes[0]
    assert list(steps.containers[0].lines[0].get_xdata()) == [0, 1, 2]
    assert ticks(steps) == ["0.01", "0.1", "5"]
    zero = dependence_plot([panel(line("", {0: RUNS, 8: RUNS}), scale="log10")]).axes[0]
    assert list(zero.containers[0].lines[0].get_xdata()) == [0, 1], "0 has no logarithm"


def test_panels_with_different_numbers_name_their_own():
    one = line("one", {1: (0.5,), 2: (0.6,)})
    figure = dependence_plot([panel(one, parameter="V"), panel(one, parameter="T")], "Recall@1")
    assert [axes.get_xlabel() for axes in figure.axes] == ["V", "T"]
    assert figure.get_supxlabel() == "one run per point"
    assert figure.axes[0].get_ylabel() == "Recall@1, %"
    assert figure.legends == [], "one line needs no legend"


@pytest.mark.parametrize("panels", [[], [panel()], [panel(line("none", {}, {1: 0.5}))]])
def test_a_panel_without_runs_is_refused(panels):
    with pytest.raises(FigureError, match="needs at least one run in every panel"):
        dependence_plot(panels)


def test_a_long_curve_has_a_band_in_place_of_bars():
    (axes,) = dependence_plot([panel(line("C2", dict.fromkeys(range(1, 31), RUNS)), scale="linear")]).axes
    assert axes.containers == []
    (band,) = axes.collections
    assert sorted({round(y, 4) for _, y in band.get_paths()[0].vertices}) == pytest.approx(
        [55 - 100 * HALF, 55 + 100 * HALF], abs=1e-3
    )
