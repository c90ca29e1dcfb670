"""Figures of methods: what is drawn, compared with the numbers given; labels; files."""

import math
from itertools import pairwise

import pytest
from matplotlib.container import ErrorbarContainer

from reports.figures.batch_size import BatchSizes, batch_size_dependence
from reports.figures.critical_difference import critical_difference_diagram, groups_of
from reports.figures.curves import FoldCurve, MethodCurves, validation_curves
from reports.figures.intervals import MethodRuns, interval_plot
from reports.figures.style import COLOURS, FigureError, png_of, save, sign, svg_of
from tests.support.sample_page import measured, runs_of


def legend_texts(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def lines_labelled(axes, label):
    return [line for line in axes.lines if line.get_label() == label]


RUNS = (0.50, 0.54, 0.61)
# mean = 0.55; deviations -0.05, -0.01, 0.06; s^2 = 0.0062 / 2; t(0.975, 2) = 4.3026527
HALF = 4.302652729911275 * math.sqrt(0.0031) / math.sqrt(3)


def test_intervals_show_mean_interval_runs_and_printed_value():
    figure = interval_plot([MethodRuns("Triplet", RUNS, 0.58), MethodRuns("One", (0.4,))], "separated P@1")
    axes = figure.axes[0]
    means = [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines_labelled(axes, "mean")]
    assert means == [(pytest.approx(55.0), 0), (pytest.approx(40.0), 1)]
    assert lines_labelled(axes, "single run")[0].get_xdata() == pytest.approx([50, 54, 61])
    assert lines_labelled(axes, "published value")[0].get_xdata() == pytest.approx([58])
    bars = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    assert len(bars) == 1, "one run has no interval"
    (ends,) = bars[0].lines[2][0].get_segments()
    assert ends[:, 0] == pytest.approx([55 - 100 * HALF, 55 + 100 * HALF])


def test_intervals_name_methods_runs_and_what_the_bar_is():
    figure = interval_plot([MethodRuns("Triplet", RUNS), MethodRuns("One", (0.4,))], "separated P@1")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["Triplet  (n = 3)", "One  (n = 1)"]
    assert axes.get_xlabel() == "separated P@1, %  (mean and 95 % Student-t interval over n runs)"
    assert axes.yaxis_inverted(), "the first method stands at the top"
    assert sorted(legend_texts(figure)) == ["95 % interval", "mean", "single run"]


def test_a_printed_value_alone_is_shown_and_a_method_with_nothing_left_out():
    figure = interval_plot([MethodRuns("A", RUNS), MethodRuns("B", (), 0.3), MethodRuns("C", ())], "x")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["A  (n = 3)", "B  (n = 0)"]


def test_intervals_need_a_run():
    with pytest.raises(FigureError, match="at least one method with a run"):
        interval_plot([MethodRuns("B", (), 0.3)], "x")


@pytest.mark.parametrize("name", ["quickstart", "all_methods_glyphs"])
def test_labels_of_real_results_do_not_overlap(name):
    experiment = measured(name)
    rows = [MethodRuns(title, runs_of(experiment, key)) for key, title in experiment.summary["methods"].items()]
    figure = interval_plot(rows, "concatenated MAP@R")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]
    assert len(boxes) == len(rows)
    assert all(not one.overlaps(two) for one, two in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


def fold(values, best):
    return FoldCurve(tuple(range(0, 100 * len(values), 100)), tuple(values), best)


CURVES = MethodCurves("Triplet", (fold((0.1, 0.3, 0.5, 0.4), 200), fold((0.2, 0.4, 0.3), 100)))


def test_the_mean_curve_ends_where_the_first_fold_stopped():
    axes = validation_curves([CURVES]).axes[0]
    (mean,) = lines_labelled(axes, "mean of all folds")
    assert list(mean.get_xdata()) == [0, 100, 200]
    assert mean.get_ydata() == pytest.approx([15, 35, 40])
    folds = lines_labelled(axes, "fold")
    assert [list(line.get_xdata()) for line in folds] == [[0, 100, 200, 300], [0, 100, 200]]
    kept = [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines_labelled(axes, "kept checkpoint")]
    assert kept == [(200, pytest.approx(50)), (100, pytest.approx(40))]


def test_the_band_reaches_from_the_lowest_to_the_highest_fold():
    axes = validation_curves([CURVES]).axes[0]
    (band,) = axes.collections
    corners = {(round(x), round(y, 6)) for x, y in band.get_paths()[0].vertices}
    assert {(0, 10), (0, 20), (100, 30), (100, 40), (200, 30), (200, 50)} <= corners
    assert max(x for x, _ in corners) == 200


def test_panels_of_curves_share_their_axes_and_say_their_folds():
    other = MethodCurves("Margin", (fold((0.0, 0.9), 100),))
    figure = validation_curves([CURVES, other])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Triplet (2 folds)", "Margin (1 fold)"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    behind = lines_labelled(figure.axes[0], "means of the other methods")
    assert [list(line.get_ydata()) for line in behind] == [[0, pytest.approx(90)]]


def test_curves_need_folds():
    with pytest.raises(FigureError, match="each of them a fold"):
        validation_curves([MethodCurves("Triplet", ())])


def test_batch_sizes_stand_on_a_logarithmic_axis_with_their_intervals():
    series = [BatchSizes("C2", {16: RUNS, 64: (0.7,)}), BatchSizes("C2-CCP", {64: RUNS})]
    figure = batch_size_dependence({"CUB": series[:1], "Cars": series})
    cub, cars = figure.axes
    assert cub.get_xscale() == "log"
    assert [text.get_text() for text in cub.get_xticklabels()] == ["16", "64"]
    line = cub.containers[0].lines[0]
    assert line.get_ydata() == pytest.approx([55, 70])
    assert line.get_xdata() == pytest.approx([16, 64], rel=0.05)
    segments = cub.containers[0].lines[2][0].get_segments()
    assert segments[0][:, 1] == pytest.approx([55 - 100 * HALF, 55 + 100 * HALF])
    assert segments[1].size == 0, "one run has no interval"
    assert figure.get_supxlabel() == "batch size  (mean and 95 % Student-t interval, n = 1 to 3 runs)"
    assert legend_texts(figure) == ["C2", "C2-CCP"]
    assert cars.containers[0].lines[0].get_color() == line.get_color()
    assert cars.containers[1].lines[0].get_color() != line.get_color()


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
    titles = measured("all_methods_glyphs").summary["methods"].values()
    figure = critical_difference_diagram({title: 1.0 + i for i, title in enumerate(titles)}, 8.0, "104 classes")
    figure.draw_without_rendering()
    names = [text for text in figure.axes[0].texts if "  " in text.get_text()]
    boxes = [text.get_window_extent() for text in names]
    assert len(boxes) == len(titles)
    for at, one in enumerate(boxes):
        assert one.x0 >= 0
        assert one.x1 <= figure.bbox.x1
        assert not any(one.overlaps(two) for two in boxes[at + 1 :])


def test_seven_series_differ_in_colour_marker_and_line():
    looks = [sign(index) for index in range(len(COLOURS))]
    for part in ("color", "marker", "linestyle"):
        assert len({str(look[part]) for look in looks}) == len(COLOURS)


def test_the_same_figure_gives_the_same_files(tmp_path):
    figures = [interval_plot([MethodRuns("Triplet", RUNS)], "x") for _ in range(2)]
    assert svg_of(figures[0]) == svg_of(figures[1])
    assert png_of(figures[0]) == png_of(figures[1])
    png, svg = save(figures[0], tmp_path / "new" / "table1.5")
    assert (png.name, svg.name) == ("table1.5.png", "table1.5.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_text() == svg_of(figures[1])
    assert "<text" not in svg.read_text(), "letters are outlines, so no font is needed"


def test_signs_of_formulas_in_names_are_drawn_as_they_stand():
    figure = interval_plot([MethodRuns("costs $5 and_ $\\frac$", RUNS)], "x")
    assert "<svg" in svg_of(figure)
    assert figure.axes[0].get_yticklabels()[0].get_text() == "costs $5 and_ $\\frac$  (n = 3)"
