"""Trials over two hyperparameters."""

import numpy as np
import pytest

from reports.figures.contour import search_contour
from tests.support.trials import COUNT, RATE, TRIALS, trial


def test_the_contour_has_logarithmic_places_where_the_search_has():
    figure = search_contour(TRIALS, RATE, COUNT, title="C2-CCP")
    axes = figure.axes[0]
    points = next(one for one in axes.collections if one.get_array() is not None and len(one.get_offsets()) == 4)
    np.testing.assert_allclose(points.get_offsets(), [[-4, 8], [0, 2], [-2, 4], [-1, 6]])
    np.testing.assert_allclose(points.get_array(), [20, 30, 25, 40])
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert {"0.0001", "0.01", "1"} <= set(labels)
    assert axes.get_xticks()[labels.index("0.01")] == pytest.approx(-2)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("loss.lr (log)", "loss.count")
    assert all(float(text.get_text()).is_integer() for text in axes.get_yticklabels())
    assert figure.axes[1].get_ylabel() == "validation MAP@R, %  (n = 4 trials)"
    star = next(one for one in axes.collections if one.get_label() == "best: 40.00 %")
    np.testing.assert_allclose(star.get_offsets(), [[-1, 6]])


def test_a_surface_needs_15_trials():
    trials = [trial(i, 0.01 * i, 10.0 ** -(i % 4), 1 + i // 4) for i in range(15)]
    assert len(surfaces(search_contour(trials, RATE, COUNT))) == 2
    failed = [*trials[1:], trial(20, None, 0.5, 3)]
    assert surfaces(search_contour(failed, RATE, COUNT)) == []


def surfaces(figure):
    return [one for one in figure.axes[0].collections if type(one).__name__ == "TriContourSet"]


def test_the_surface_stays_between_the_trials():
    generator = np.random.default_rng(0)
    trials = [
        trial(i, 0.1 + 0.01 * i, 10 ** -generator.uniform(1, 4), int(generator.integers(1, 17))) for i in range(30)
    ]
    filled, _ = surfaces(search_contour(trials, RATE, COUNT))
    vertices = np.concatenate([path.vertices for path in filled.get_paths() if len(path.vertices)])
    places = np.array([[np.log10(one.parameters["loss.lr"]), one.parameters["loss.count"]] for one in trials])
    assert (vertices >= places.min(axis=0) - 1e-9).all()
    assert (vertices <= places.max(axis=0) + 1e-9).all()


@pytest.mark.parametrize(
    "trials",
    [
        TRIALS[:2],
        [trial(i, 0.01 * i, 10.0 ** -(i % 4), 1 + i // 4) for i in range(14)],
        [trial(i, 0.01 * i, 10.0**-i, 2 + i) for i in range(15)],
        [trial(i, 0.01 * i, 10.0**-i, 4) for i in range(15)],
    ],
    ids=["two trials", "14 trials", "all in a line", "one value of a parameter"],
)
def test_trials_that_span_no_surface_are_shown_without_one(trials):
    figure = search_contour(trials, RATE, COUNT)
    assert surfaces(figure) == []
    assert len(figure.axes[0].collections) == 2


def test_a_search_of_equal_values_is_drawn():
    corners = [trial(0, 0.2, 0.1, 1), trial(1, 0.2, 0.01, 1), trial(2, 0.2, 0.1, 9), trial(3, 0.2, 0.01, 9)]
    figure = search_contour(corners, RATE, COUNT)
    figure.draw_without_rendering()
    assert figure.axes[1].get_ylim() == pytest.approx((20, 21))
