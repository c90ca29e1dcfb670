"""The figure of one method's searches and of the tests that call them different."""

import pytest

from reports.figures.style import FigureError
from tests.benchmarks.same_method_counts import COMPARISON, PAIRED_T_TEST, T_TEST, WrongCalls
from tests.benchmarks.same_method_figure import same_method_figure

CALLS = [
    WrongCalls(1, 66, {T_TEST: 0.5, PAIRED_T_TEST: 0.4, COMPARISON: 0.3}, 0.0),
    WrongCalls(3, 2000, {T_TEST: 0.6, PAIRED_T_TEST: 0.5, COMPARISON: 0.04}, 0.1),
]


def test_searches_stand_from_the_best_with_their_runs_and_the_shares_by_number_of_searches():
    above, below = same_method_figure([[0.1, 0.2], [0.3, 0.5]], CALLS, 0.05, "MAP@R").axes
    points, means = above.lines[::2], above.lines[1::2]
    assert [list(line.get_ydata()) for line in points] == [[30.0, 50.0], [10.0, 20.0]]
    assert [line.get_ydata()[0] for line in means] == pytest.approx([40.0, 15.0])
    shares = {line.get_label(): list(line.get_ydata()) for line in below.lines}
    assert shares[T_TEST] == [50.0, 60.0]
    assert shares[COMPARISON] == [30.0, 4.0]
    assert below.lines[-1].get_ydata()[0] == 5.0
    assert [label.get_text() for label in below.get_xticklabels()] == ["1", "3"]


def test_without_runs_there_is_no_figure():
    with pytest.raises(FigureError, match="runs of searches"):
        same_method_figure([], CALLS, 0.05, "MAP@R")
