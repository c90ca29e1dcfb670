"""Figures of scores: intervals, curves, scores against a number, searches; and the look that all share."""

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

from reports.figures.score_figures import (
    FoldCurve,
    Places,
    caption_of_intervals,
    caption_of_search,
    interval_plot,
    rank_plot,
    score_curves,
    search_history,
)
from reports.figures.style import FigureError, files_of
from reports.page.sweeps import dependence_plot
from results.answer.intervals import Interval
from results.answer.sample import sample_of
from results.answer.scaling import scaling_of
from results.records.trials import Trial
from tests.support.drawn import HALF, RUNS, legend_texts, lines_labelled, method_runs, points


def bars_of(axes):
    return [container for container in axes.containers if isinstance(container, ErrorbarContainer)]


def test_intervals_show_mean_interval_and_runs():
    figure = interval_plot(
        {"Triplet": method_runs(RUNS), "One": method_runs((0.4,))}, "P@1", sample_of("run"), scaling_of("fractions")
    )
    axes = figure.axes[0]
    means = [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines_labelled(axes, "mean")]
    assert means == [(pytest.approx(55.0), 0), (pytest.approx(40.0), 1)]
    assert lines_labelled(axes, "single run")[0].get_xdata() == pytest.approx([50, 54, 61])
    (bar,) = bars_of(axes)  # One run has no interval.
    (ends,) = bar.lines[2][0].get_segments()
    assert ends[:, 0] == pytest.approx([55 - 100 * HALF, 55 + 100 * HALF])
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["Triplet  (n\u00a0=\u00a03)", "One  (n\u00a0=\u00a01)"]
    assert axes.yaxis_inverted(), "the first method stands at the top"


def test_an_interval_over_searches_is_the_given_one():
    figure = interval_plot(
        {"A": ((0.3, 0.31), Interval(0.305, 0.1, 2))}, "MAP@R, %", sample_of("search"), scaling_of("fractions")
    )
    assert figure.axes[0].get_xlabel() == "MAP@R, %\n(mean and 95 % interval over n searches)"
    (ends,) = bars_of(figure.axes[0])[0].lines[2][0].get_segments()
    assert ends[:, 0] == pytest.approx([20.5, 40.5])
    assert "single search" in legend_texts(figure)
    assert "mean of one search" in caption_of_intervals(sample_of("search"))


def test_ranks_are_lines_from_the_first_to_the_last_place_with_that_of_the_mean():
    figure = rank_plot(
        {"birds": {"A": Places(1, 1, 3), "B": Places(2, 2, 2)}, "cars": {"B": Places(1, 2, 2), "A": Places(1, 1, 1)}}
    )
    birds, cars = figure.axes
    assert [list(line.get_xdata()) for line in lines_labelled(birds, "can have")] == [[1, 3], [2, 2]]
    assert [list(line.get_xdata()) for line in lines_labelled(cars, "can have")] == [[1, 1], [1, 2]]
    assert [line.get_xdata()[0] for line in lines_labelled(cars, "its mean has")] == [1, 2]
    assert [text.get_text() for text in birds.get_yticklabels()] == ["A", "B"]
    assert birds.yaxis_inverted(), "the first method stands at the top"
    with pytest.raises(FigureError, match="same methods"):
        rank_plot({"birds": {"A": Places(1, 1, 1)}, "cars": {"B": Places(1, 1, 1)}})


def fold(values, best):
    return FoldCurve({100 * place: value for place, value in enumerate(values)}, best)


CURVES = {"Triplet": [fold((0.1, 0.3, 0.5, 0.4), 200), fold((0.2, 0.4, 0.3), 100)]}


def test_mean_and_band_of_curves_end_where_the_first_fold_stopped():
    axes = score_curves(CURVES).axes[0]
    (mean,) = lines_labelled(axes, "mean of all folds")
    assert list(mean.get_xdata()) == [0, 100, 200]
    assert mean.get_ydata() == pytest.approx([15, 35, 40])
    assert [list(line.get_xdata()) for line in lines_labelled(axes, "fold")] == [[0, 100, 200, 300], [0, 100, 200]]
    kept = [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines_labelled(axes, "kept checkpoint")]
    assert kept == [(200, pytest.approx(50)), (100, pytest.approx(40))]
    corners = {(round(x), round(y, 6)) for x, y in axes.collections[0].get_paths()[0].vertices}
    assert {(0, 10), (0, 20), (100, 30), (100, 40), (200, 30), (200, 50)} <= corners
    assert max(x for x, _ in corners) == 200


def test_panels_of_curves_share_their_axes_and_say_their_lines():
    figure = score_curves({**CURVES, "Margin": [fold((0.0, 0.9), 100)]}, "test P@1", "run")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Triplet (2 runs)", "Margin (1 run)"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    with pytest.raises(FigureError, match="at least one method"):
        score_curves({})


def against(*lines):
    return dependence_plot(pd.concat(lines, ignore_index=True), "batch size", "MAP@R")


def ticks(axes):
    return [text.get_text() for text in axes.get_xticklabels()]


def test_numbers_stand_at_equal_distances_with_intervals():
    plain = {16: RUNS, 64: (0.7,)}
    figure = against(points("C2", plain), points("C2", plain, panel="Cars"), points("CCP", {64: RUNS}, panel="Cars"))
    cub, cars = figure.axes
    assert ticks(cub) == ["16", "64"]
    drawn = cub.containers[0].lines[0]
    assert drawn.get_ydata() == pytest.approx([55, 70])
    assert drawn.get_xdata() == pytest.approx([0, 1], abs=0.1)
    segments = cub.containers[0].lines[2][0].get_segments()
    assert segments[0][:, 1] == pytest.approx([55 - 100 * HALF, 55 + 100 * HALF])
    assert segments[1].size == 0, "one run has no interval"
    assert figure.get_supxlabel() == "mean and 95 % interval, n = 1 to 3 runs"
    assert legend_texts(figure) == ["C2", "CCP"]
    assert cars.containers[0].lines[0].get_color() == drawn.get_color() != cars.containers[1].lines[0].get_color()
    of_searches = against(points("C2", {16: RUNS}, unit="search"))
    assert of_searches.get_supxlabel() == "mean and 95 % interval, n = 3 searches"


def test_published_scores_are_hollow_markers_beside_the_runs():
    figure = against(points("r = 1", {1: RUNS}, {1: 0.5, 4: 0.6}))
    (hollow,) = lines_labelled(figure.axes[0], "_published")
    assert list(hollow.get_ydata()) == [50, 60]
    assert hollow.get_markerfacecolor() == "white"
    assert ticks(figure.axes[0]) == ["1", "4"], "a published number without a run is on the axis too"
    assert legend_texts(figure) == ["r = 1", "published"]


def test_a_panel_without_runs_is_refused():
    with pytest.raises(FigureError, match="needs at least one run in every panel"):
        against(points("none", {}, {1: 0.5}))


def trial(number, score, state="complete", reason=None):
    return Trial(number=number, setting={}, state=state, score=score, reason=reason)


SEARCH = (
    trial(0, 0.2),
    trial(1, None, "failed", "lr too large"),
    trial(2, 0.3),
    trial(3, 0.25, "raced"),
    trial(4, 0.4),
)


def test_a_search_shows_its_trials_and_the_best_up_to_each():
    (axes,) = search_history(SEARCH).axes
    whole, raced, best = axes.lines
    assert (list(whole.get_xdata()), list(whole.get_ydata())) == ([0, 2, 4], pytest.approx([20, 30, 40]))
    assert list(raced.get_xdata()) == [3]
    assert list(best.get_ydata()) == pytest.approx([20, 30, 30, 40])
    with pytest.raises(FigureError, match="needs a trial with a value"):
        search_history(SEARCH[1:2])


def test_the_caption_of_a_search_counts_raced_trials_and_names_failed_ones():
    assert "1 of 5 trials was clearly behind" in caption_of_search(SEARCH)
    assert caption_of_search(SEARCH).endswith("Failed, since the method does not take the setting: 1 (lr too large).")


def test_the_same_figure_gives_the_same_files_and_names_are_no_formulas():
    figures = [
        interval_plot({"costs $5 and_ $\\frac$": method_runs(RUNS)}, "x", sample_of("run"), scaling_of("fractions"))
        for _ in range(2)
    ]
    assert figures[0].axes[0].get_yticklabels()[0].get_text() == "costs $5 and_ $\\frac$\n(n\u00a0=\u00a03)"
    first, second = map(files_of, figures)
    assert first == second
    assert "<text" not in first["svg"], "letters are outlines, so no font is needed"


def test_a_style_of_the_user_changes_no_figure():
    plain = files_of(interval_plot({"A": method_runs(RUNS)}, "x", sample_of("run"), scaling_of("fractions")))
    own = {
        **{"text.usetex": True, "font.family": "monospace", "lines.markeredgewidth": 4, "errorbar.capsize": 9},
        **{"axes.facecolor": "black", "lines.linestyle": "None", "savefig.bbox": "tight", "xtick.bottom": False},
    }
    with mpl.rc_context(own):
        assert (
            files_of(interval_plot({"A": method_runs(RUNS)}, "x", sample_of("run"), scaling_of("fractions"))) == plain
        )
        assert mpl.rcParams["lines.markeredgewidth"] == 4, "the user's own figures keep the style"
