"""Test scores after every epoch."""

import pytest

from reports.figures.convergence import Convergence, ConvergencePanel, convergence_plot
from reports.figures.style import FigureError
from tests.support.drawn import lines_labelled

TWO = Convergence("A", (1, 2), ((0.5, 0.6), (0.7, 0.6)), {2: 0.65})
ONE = Convergence("B", (1, 2, 3), ((0.1, 0.2, 0.3),))


def test_a_line_is_the_mean_and_a_band_one_standard_deviation():
    figure = convergence_plot([[ConvergencePanel("Cars", (TWO, ONE))]], "Recall@1")
    (axes,) = figure.axes
    (mean,) = lines_labelled(axes, "A (2 runs)")
    assert list(mean.get_ydata()) == pytest.approx([60, 60])
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    # s of 0.5 and 0.7 is 0.1414; the runs are equal after epoch 2. One run has no band.
    assert (heights.min(), heights.max()) == pytest.approx((60 - 14.142136, 60 + 14.142136))
    (published,) = lines_labelled(axes, "A, published")
    assert (list(published.get_xdata()), list(published.get_ydata())) == ([2], [65])
    assert published.get_marker() == lines_labelled(axes, "A (2 runs)")[0].get_marker() != "D"
    assert lines_labelled(axes, "B (1 run)")
    assert figure.get_supylabel() == "test Recall@1, %"


def test_panels_of_a_row_share_their_scores():
    panel = ConvergencePanel("one", (TWO,))
    figure = convergence_plot([[panel, panel], [ConvergencePanel("two", (ONE,))]])
    first, second, third, empty = figure.axes
    assert first.get_ylim() == second.get_ylim() != third.get_ylim()
    assert not empty.axison


@pytest.mark.parametrize("rows", [[], [[]], [[ConvergencePanel("none", ())]]])
def test_a_panel_without_curves_is_refused(rows):
    with pytest.raises(FigureError, match="needs at least one test curve"):
        convergence_plot(rows)
