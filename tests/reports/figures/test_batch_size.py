"""Scores over batch sizes."""

import pytest

from reports.figures.batch_size import BatchSizes, batch_size_dependence
from tests.support.drawn import HALF, RUNS, legend_texts


def test_batch_sizes_stand_on_a_logarithmic_axis_with_their_intervals():
    series = [BatchSizes("C2", {16: RUNS, 64: (0.7,)}), BatchSizes("C2-CCP", {64: RUNS})]
    figure = batch_size_dependence({"CUB": series[:1], "Cars": series})
    cub, cars = figure.axes
    assert cub.get_xscale() == "log"
    assert [text.get_text() for text in cub.get_xticklabels()] == ["16", "64"]
    line = cub.containers[0].lines[0]
    assert line.get_ydata() == pytest.approx([55, 70])
    assert line.get_xdata() == pytest.approx([16, 64], rel=0.05)
    segments = cub.containers[0].lines[2][0].get_segments()
    assert segments[0][:, 1] == pytest.approx([55 - 100 * HALF, 55 + 100 * HALF])
    assert segments[1].size == 0, "one run has no interval"
    assert figure.get_supxlabel() == "batch size  (mean and 95 % Student-t interval, n = 1 to 3 runs)"
    assert legend_texts(figure) == ["C2", "C2-CCP"]
    assert cars.containers[0].lines[0].get_color() == line.get_color()
    assert cars.containers[1].lines[0].get_color() != line.get_color()
