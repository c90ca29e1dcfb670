"""Validation curves: every fold, their mean and their band."""

import pytest

from reports.figures.curves import FoldCurve, MethodCurves, score_curves
from reports.figures.style import FigureError
from tests.support.drawn import lines_labelled


def fold(values, best):
    return FoldCurve(tuple(range(0, 100 * len(values), 100)), tuple(values), best)


CURVES = MethodCurves("Triplet", (fold((0.1, 0.3, 0.5, 0.4), 200), fold((0.2, 0.4, 0.3), 100)))


def test_the_mean_curve_ends_where_the_first_fold_stopped():
    axes = score_curves([CURVES]).axes[0]
    (mean,) = lines_labelled(axes, "mean of all folds")
    assert list(mean.get_xdata()) == [0, 100, 200]
    assert mean.get_ydata() == pytest.approx([15, 35, 40])
    folds = lines_labelled(axes, "fold")
    assert [list(line.get_xdata()) for line in folds] == [[0, 100, 200, 300], [0, 100, 200]]
    kept = [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines_labelled(axes, "kept checkpoint")]
    assert kept == [(200, pytest.approx(50)), (100, pytest.approx(40))]


def test_the_band_reaches_from_the_lowest_to_the_highest_fold():
    axes = score_curves([CURVES]).axes[0]
    (band,) = axes.collections
    corners = {(round(x), round(y, 6)) for x, y in band.get_paths()[0].vertices}
    assert {(0, 10), (0, 20), (100, 30), (100, 40), (200, 30), (200, 50)} <= corners
    assert max(x for x, _ in corners) == 200


def test_panels_of_curves_share_their_axes_and_say_their_folds():
    other = MethodCurves("Margin", (fold((0.0, 0.9), 100),))
    figure = score_curves([CURVES, other])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Triplet (2 folds)", "Margin (1 fold)"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    behind = lines_labelled(figure.axes[0], "means of the other methods")
    assert [list(line.get_ydata()) for line in behind] == [[0, pytest.approx(90)]]


def test_curves_need_folds():
    with pytest.raises(FigureError, match="at least one fold of each method"):
        score_curves([MethodCurves("Triplet", ())])


def test_the_lines_of_runs_are_called_runs():
    axes = score_curves([CURVES], "test P@1", "run").axes[0]
    assert axes.get_title(loc="left") == "Triplet (2 runs)"
    assert len(lines_labelled(axes, "run")) == 2
    assert len(lines_labelled(axes, "mean of all runs")) == 1
