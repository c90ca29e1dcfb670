"""What a drawn figure holds, read back for the tests of figures."""

import math

import pandas as pd

from results.answer.intervals import student_t_interval


def legend_texts(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def lines_labelled(axes, label):
    return [line for line in axes.lines if line.get_label() == label]


RUNS = (0.50, 0.54, 0.61)
# mean = 0.55; deviations -0.05, -0.01, 0.06; s^2 = 0.0062 / 2; t(0.975, 2) = 4.3026527
HALF = 4.302652729911275 * math.sqrt(0.0031) / math.sqrt(3)


def method_runs(values):
    return values, student_t_interval(values)


def points(line, values, published=None, panel="CUB", unit="run"):
    """A line of scores by number as rows of a frame, with Student-t intervals."""
    rows = []
    for x in sorted({*values, *(published or {})}):
        own = tuple(values.get(x, ()))
        interval = student_t_interval(own) if own else None
        numbers = {"mean": interval and interval.mean, "half_width": interval and interval.half_width, "n": len(own)}
        about = {"panel": panel, "line": line, "x": x, "unit": unit if own else None}
        rows.append({**about, **numbers, "values": own, "published": (published or {}).get(x)})
    return pd.DataFrame(rows)
