"""Optuna's plots of a search."""

import warnings

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

from reports.figures.search import (
    Parameter,
    SearchHistory,
    TrialPoint,
    alternative_text,
    caption,
    search_contour,
    search_history,
    strongest_pair,
    study_of,
)
from reports.figures.style import FigureError, svg_of

PARAMETERS = (Parameter("loss.lr", "log"), Parameter("loss.count", "int"), Parameter("loss.other"))


def trial(number, value, rate=0.01, count=4, **more):
    return TrialPoint(number, {"loss.lr": rate, "loss.count": count, "loss.other": 0.5 - number % 2}, value, **more)


SEARCH = SearchHistory(
    (
        trial(2, 0.3, 1.0, 2),
        trial(0, 0.2, 0.0001, 8),
        trial(1, None, reason="lr too large"),
        trial(3, 0.25, 0.01, 4, raced=True),
        trial(4, 0.4, 10.0, 1),
    ),
    PARAMETERS,
)


def test_a_study_has_the_trials_in_order_with_their_values():
    study = study_of(SEARCH)
    assert [one.value for one in study.trials] == [0.2, None, 0.3, 0.25, 0.4]
    assert study.best_params == {"loss.lr": 10.0, "loss.count": 1, "loss.other": 0.5}
    assert study.trials[0].distributions["loss.lr"].log


def test_the_figures_show_values_and_leave_pyplot_as_it_was():
    style = mpl.rcParams["axes.facecolor"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = search_history(SEARCH)
        surface = search_contour(SEARCH, "loss.lr", "loss.count")
    assert sorted(history.axes[0].collections[0].get_offsets()[:, 1]) == [0.2, 0.25, 0.3, 0.4]
    assert {surface.axes[0].get_xlabel(), surface.axes[0].get_ylabel()} == {"loss.lr", "loss.count"}
    assert all("<svg" in svg_of(figure) for figure in (history, surface))
    assert (mpl.rcParams["axes.facecolor"], plt.get_fignums()) == (style, [])


def test_the_pair_of_a_contour_is_the_one_that_goes_with_the_values():
    assert set(strongest_pair(SEARCH)) == {"loss.lr", "loss.count"}


def test_words_name_range_best_trial_raced_and_failed_ones():
    text = alternative_text(SEARCH)
    assert text.startswith("Validation MAP@R of 4 trials, from 20.00 % to 40.00 %. The best trial is number 4, with ")
    assert "loss.lr 10, loss.count 1" in text
    assert "1 of 5 trials were clearly behind" in caption(SEARCH)
    assert caption(SEARCH).endswith("Failed, since the method does not take the setting: 1 (lr too large).")


def test_a_search_without_values_has_no_figure():
    with pytest.raises(FigureError, match="needs a trial with a value"):
        search_history(SearchHistory((trial(0, None),), PARAMETERS))
