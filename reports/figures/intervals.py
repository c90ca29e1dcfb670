"""Figure of methods side by side: searches or runs, mean and interval."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import (
    BLUE,
    GREY,
    INK,
    PAGE_WIDTH,
    Look,
    legend_keys,
    new_figure,
    styled,
)
from results.answer.intervals import Interval

IntervalUnit = Literal["search", "run"]
"""What a point is, and what an interval is over."""

_LONG_NAME, _WIDE_NAME = 26, 16
"""Numbers of characters after which a name wraps, and leaves the axis too narrow for its label."""


MethodRuns = tuple[Sequence[float], Interval]
"""Means of a method's searches where they are repeated, else scores of its runs, fractions of 1; and its interval."""


@styled
def interval_plot(methods: Mapping[str, MethodRuns], score: str, unit: IntervalUnit = "run") -> Figure:
    """Draw mean and 95 % interval of each method by its title, and its searches or runs as points.

    A method with one value is a point without interval. The axis is in percent and does not always start at 0.
    """
    figure = new_figure(1.35 + 0.33 * len(methods), PAGE_WIDTH)
    axes = figure.add_subplot()
    for row, (values, interval) in enumerate(methods.values()):
        _draw(axes, row, values, interval, f"single {unit}")
    # A long name wraps, but not inside its number of runs.
    names = [fill(f"{name}  (n\u00a0=\u00a0{len(values)})", _LONG_NAME) for name, (values, _) in methods.items()]
    axes.set_yticks(range(len(methods)), names)
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")
    over = "searches" if unit == "search" else "runs of a setting"
    # Beside long names the axis is narrower than its label, which then grows to the left.
    wide = max(len(line) for name in names for line in name.splitlines()) > _WIDE_NAME
    axes.set_xlabel(f"{score}\n(mean and 95 % interval over n {over})", loc="right" if wide else "center")
    # A key outside the axes hides no point. It has one entry for each kind of marker.
    figure.legend(*legend_keys(axes), loc="outside upper right", ncols=2)
    return figure


def _draw(axes: Axes, row: int, values: Sequence[float], interval: Interval, point: str) -> None:
    percent = 100 * np.asarray(values)
    if interval.half_width is not None:
        bar: Look = {"color": INK, "elinewidth": 1.6, "capsize": 4, "capthick": 1.6, "linestyle": ""}
        axes.errorbar(100 * interval.mean, row, xerr=100 * interval.half_width, label="95 % interval", **bar)
    axes.plot(percent, np.full(len(percent), row + 0.24), ".", color=GREY, markersize=5, alpha=0.8, label=point)
    axes.plot(100 * interval.mean, row, "o", color=BLUE, markersize=6.5, label="mean")


def caption(unit: IntervalUnit) -> str:
    """Explain the points and the intervals."""
    points = "the means of the searches" if unit == "search" else "the single runs"
    over = "" if unit == "search" else " The intervals are about the settings: another search is not in them."
    return (
        f"The points below a mean are {points}.{over} Overlapping intervals do not replace a test. The verdicts above "
        "are tests."
    )
