"""What a drawn figure holds, read back for the tests of figures."""

import math


def legend_texts(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def lines_labelled(axes, label):
    return [line for line in axes.lines if line.get_label() == label]


RUNS = (0.50, 0.54, 0.61)
# mean = 0.55; deviations -0.05, -0.01, 0.06; s^2 = 0.0062 / 2; t(0.975, 2) = 4.3026527
HALF = 4.302652729911275 * math.sqrt(0.0031) / math.sqrt(3)
