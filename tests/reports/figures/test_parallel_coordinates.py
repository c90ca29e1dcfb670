"""Trials across all their hyperparameters."""

import numpy as np
import pytest

from reports.figures.parallel_coordinates import parallel_coordinates
from tests.support.trials import COUNT, RATE, TRIALS, line, trial


def test_parallel_coordinates_place_each_trial_on_the_scale_of_its_search():
    figure = parallel_coordinates(TRIALS, [RATE, COUNT])
    axes = figure.axes[0]
    best = line(axes, "best trial: 40.00 %")
    # 0.1 on a logarithmic axis from 0.0001 to 1; 6 on one from 2 to 8; the best value at the top.
    assert best.get_ydata() == pytest.approx([3 / 4, 4 / 6, 1.0])
    others = [one for one in axes.lines if len(one.get_xdata()) == 3 and one is not best]
    assert sorted(tuple(np.round(one.get_ydata(), 6)) for one in others) == [
        (0.0, 1.0, 0.0),
        (0.5, round(2 / 6, 6), 0.25),
        (1.0, 0.0, 0.5),
    ]
    texts = {text.get_text() for text in axes.texts}
    assert {"loss.lr (log)", "loss.count", "validation MAP@R", "0.001", "4"} <= texts
    assert figure.axes[1].get_ylabel() == "validation MAP@R, %  (n = 4 trials)"


def test_parallel_coordinates_of_equal_values_are_drawn_in_the_middle():
    same = [trial(0, 0.2), trial(1, 0.2)]
    assert line(parallel_coordinates(same, [RATE]).axes[0], "best trial: 20.00 %").get_ydata() == pytest.approx(
        [0.5, 0.5]
    )
