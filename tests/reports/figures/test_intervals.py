"""Interval plots: mean, interval, single runs and printed values; labels that do not overlap."""

from itertools import pairwise

import pytest
from matplotlib.container import ErrorbarContainer

from reports.figures.intervals import MethodRuns, caption, interval_plot
from reports.figures.style import PAGE_WIDTH, FigureError
from results.statistics.intervals import Interval
from tests.support.drawn import HALF, RUNS, legend_texts, lines_labelled, method_runs
from tests.support.sample_page import measured, runs_of


def test_intervals_show_mean_interval_runs_and_printed_value():
    figure = interval_plot([method_runs("Triplet", RUNS, 0.58), method_runs("One", (0.4,))], "separated P@1")
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
    figure = interval_plot([method_runs("Triplet", RUNS), method_runs("One", (0.4,))], "separated P@1")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "Triplet  (n\u00a0=\u00a03)",
        "One  (n\u00a0=\u00a01)",
    ]
    assert axes.get_xlabel() == "separated P@1, %\n(mean and 95 % interval over n runs of a setting)"
    assert axes.yaxis_inverted(), "the first method stands at the top"
    assert sorted(legend_texts(figure)) == ["95 % interval", "mean", "single run"]


def test_a_printed_value_alone_is_shown_and_a_method_with_nothing_left_out():
    figure = interval_plot([method_runs("A", RUNS), method_runs("B", (), 0.3), method_runs("C", ())], "x")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        "A  (n\u00a0=\u00a03)",
        "B  (n\u00a0=\u00a00)",
    ]


def test_intervals_need_a_run():
    with pytest.raises(FigureError, match="at least one method with a run"):
        interval_plot([method_runs("B", (), 0.3)], "x")


@pytest.mark.parametrize("name", ["quickstart", "all_methods_glyphs"])
def test_labels_of_real_results_do_not_overlap(name):
    experiment = measured(name)
    rows = [method_runs(title, runs_of(experiment, key)) for key, title in experiment.summary.methods.items()]
    figure = interval_plot(rows, "concatenated MAP@R")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]
    assert len(boxes) == len(rows)
    assert all(not one.overlaps(two) for one, two in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


def test_a_figure_wraps_long_names_but_not_inside_the_number_of_runs():
    figure = interval_plot([method_runs("Multi-Similarity with miner", RUNS)], "concatenated MAP@R")
    (label,) = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert label == "Multi-Similarity with\nminer  (n\u00a0=\u00a03)"
    assert figure.get_figwidth() == PAGE_WIDTH
    figure.draw_without_rendering()
    assert all(text.get_window_extent().x0 >= 0 for text in figure.axes[0].get_yticklabels())
    assert figure.axes[0].xaxis.label.get_window_extent().x1 <= figure.bbox.x1


def test_an_interval_over_searches_is_the_given_one():
    figure = interval_plot([MethodRuns("A", (0.3, 0.31), Interval(0.305, 0.1, 2))], "MAP@R", "search")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "MAP@R, %\n(mean and 95 % interval over n searches)"
    (bar,) = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    (ends,) = bar.lines[2][0].get_segments()
    assert ends[:, 0] == pytest.approx([20.5, 40.5])
    assert "single search" in legend_texts(figure)
    assert "means of the searches" in caption("search")
    assert "another search is not in them" in caption("run")
