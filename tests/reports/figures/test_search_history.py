"""The history of a search: trials in their order and the best so far."""

from dataclasses import replace

import pytest

from reports.figures.search_history import search_history
from reports.figures.style import FigureError
from tests.support.trials import TRIALS, line, trial


def test_the_history_shows_trials_from_one_and_the_best_so_far():
    axes = search_history(TRIALS, startup=2).axes[0]
    assert list(line(axes, "trial").get_xdata()) == [1, 3, 4, 5]
    assert line(axes, "trial").get_ydata() == pytest.approx([20, 30, 25, 40])
    assert list(line(axes, "best so far").get_xdata()) == [1, 3, 4, 5, 5]
    assert line(axes, "best so far").get_ydata() == pytest.approx([20, 30, 30, 40, 40])
    assert line(axes, "best: 40.00 %").get_xdata() == pytest.approx([5])
    assert list(line(axes, "failed trial").get_xdata()) == [2]
    assert axes.get_xlabel() == "trial (n = 5)"
    assert "mean over folds" in axes.get_ylabel()
    shade = next(patch for patch in axes.patches if "start-up" in patch.get_label())
    assert (shade.get_x(), shade.get_width()) == (0.5, 2.0)


def test_raced_trials_are_empty_circles_at_their_expected_values():
    trials = [*TRIALS, replace(trial(5, 0.1), raced=True)]
    axes = search_history(trials).axes[0]
    raced = line(axes, "clearly behind, expected value")
    assert list(raced.get_xdata()) == [6]
    assert raced.get_markerfacecolor() == "none"
    assert list(line(axes, "trial").get_xdata()) == [1, 3, 4, 5]


def test_a_history_without_values_says_what_is_missing():
    with pytest.raises(FigureError, match="a trial with a value"):
        search_history([trial(0, None)])
