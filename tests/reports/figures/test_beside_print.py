"""Published values beside our intervals and prediction intervals."""

import pytest

from reports.figures.beside_print import PublishedRowValues, beside_print
from reports.figures.style import FigureError
from results.statistics.intervals import Interval
from tests.support.drawn import legend_texts, lines_labelled

ROWS = [
    PublishedRowValues("Triplet", 26.1, Interval(25.5, 0.4, 10), Interval(25.5, 1.3, 10)),
    PublishedRowValues("One run", 30.0, Interval(31.0, None, 1)),
]


def test_every_row_shows_the_published_value_our_mean_and_both_intervals():
    figure = beside_print(ROWS, "separated MAP@R, %")
    axes = figure.axes[0]
    assert [line.get_xdata()[0] for line in lines_labelled(axes, "published value")] == [26.1, 30.0]
    assert [line.get_xdata()[0] for line in lines_labelled(axes, "our mean")] == [25.5, 31.0]
    (prediction,) = lines_labelled(axes, "95 % prediction interval")
    assert list(prediction.get_xdata()) == pytest.approx([24.2, 26.8])
    (bar,) = axes.containers
    (ends,) = bar.lines[2][0].get_segments()
    assert ends[:, 0] == pytest.approx([25.1, 25.9])
    names = [text.get_text().replace("\u00a0", " ") for text in axes.get_yticklabels()]
    assert names == ["Triplet  (n = 10)", "One run  (n = 1)"]
    assert axes.get_xlabel() == "separated MAP@R, %"
    assert len(legend_texts(figure)) == 4


def test_without_rows_there_is_no_figure():
    with pytest.raises(FigureError, match="at least one row"):
        beside_print([], "x")
