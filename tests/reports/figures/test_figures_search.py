"""Figures of searches: trials in their order, across their hyperparameters, and over two of them."""

import numpy as np
import pytest

from reports.figures.contour import search_contour
from reports.figures.parallel_coordinates import parallel_coordinates
from reports.figures.search_history import search_history
from reports.figures.style import FigureError
from reports.figures.trials import Parameter, TrialPoint, finished

RATE, COUNT = Parameter("loss.lr", "log"), Parameter("loss.count", "int")


def trial(number, value, rate=0.01, count=4):
    return TrialPoint(number, {"loss.lr": rate, "loss.count": count}, value)


TRIALS = [
    trial(2, 0.3, 1.0, 2),
    trial(0, 0.2, 0.0001, 8),
    trial(1, None),
    trial(3, 0.25, 0.01, 4),
    trial(4, 0.4, 0.1, 6),
]


def line(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def test_finished_trials_come_in_their_order_without_the_failed_ones():
    assert [(one.number, value) for one, value in finished(TRIALS)] == [(0, 0.2), (2, 0.3), (3, 0.25), (4, 0.4)]


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


def test_a_history_without_values_says_what_is_missing():
    with pytest.raises(FigureError, match="a trial with a value"):
        search_history([trial(0, None)])


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
        [trial(i, 0.1 * i, 10.0**-i, 2 + i) for i in range(5)],
        [trial(i, 0.1 * i, 10.0**-i, 4) for i in range(5)],
    ],
    ids=["two trials", "all in a line", "one value of a parameter"],
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
