"""Figure of methods side by side: runs, mean, interval, and published value."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PAGE_WIDTH,
    FigureError,
    Look,
    legend_keys,
    new_figure,
    styled,
)
from reports.wording import percent
from results.statistics.intervals import student_t_interval

_LONG_NAME = 26
"""Number of characters after which a name wraps."""


@dataclass(frozen=True)
class MethodRuns:
    """Scores of one method.

    Attributes:
        values: Scores of the runs as fractions of 1.
        published: Published score as a fraction of 1, if there is one.
    """

    name: str
    values: tuple[float, ...]
    published: float | None = None


@styled
def interval_plot(methods: Sequence[MethodRuns], metric: str) -> Figure:
    """Draw mean and 95 % Student-t interval of each method, its runs as points, and the published value as a tick.

    A method with one run is a point without interval. The axis is in percent and does not always start at 0.
    """
    shown = [method for method in methods if method.values or method.published is not None]
    if not any(method.values for method in shown):
        raise FigureError("the interval plot needs at least one method with a run")
    figure = new_figure(1.35 + 0.33 * len(shown), PAGE_WIDTH)
    axes = figure.add_subplot()
    for row, method in enumerate(shown):
        _draw(axes, row, method)
    # A long name wraps, but not inside its number of runs.
    names = [fill(f"{method.name}  (n\u00a0=\u00a0{len(method.values)})", _LONG_NAME) for method in shown]
    axes.set_yticks(range(len(shown)), names)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")
    axes.set_xlabel(f"{metric}, %\n(mean and 95 % Student-t interval over n runs)")
    # A key outside the axes hides no point. It has one entry for each kind of marker.
    figure.legend(*legend_keys(axes), loc="outside upper right", ncols=2)
    return figure


def _draw(axes: Axes, row: int, method: MethodRuns) -> None:
    values = 100 * np.asarray(method.values)
    if method.published is not None:
        tick: Look = {"marker": "|", "markersize": 15, "markeredgewidth": 2.2, "color": ORANGE, "linestyle": ""}
        axes.plot(100 * method.published, row, label="published value", **tick)
    if not method.values:
        return
    interval = student_t_interval(list(method.values))
    if interval.half_width is not None:
        bar: Look = {"color": INK, "elinewidth": 1.6, "capsize": 4, "capthick": 1.6, "linestyle": ""}
        axes.errorbar(100 * interval.mean, row, xerr=100 * interval.half_width, label="95 % interval", **bar)
    axes.plot(values, np.full(len(values), row + 0.24), ".", color=GREY, markersize=5, alpha=0.8, label="single run")
    axes.plot(100 * interval.mean, row, "o", color=BLUE, markersize=6.5, label="mean")


def caption(*, repeated_searches: bool) -> str:
    """Explain the points, which are means where searches were repeated."""
    points = "the means of the searches, or single runs without a search" if repeated_searches else "the single runs"
    return (
        f"The points below a mean are {points}. Overlapping intervals do not replace a test. The verdicts above are "
        "tests."
    )


def alternative_text(methods: Sequence[MethodRuns]) -> str:
    """Describe means with intervals, the highest first, and published values."""
    ordered = sorted(methods, key=lambda method: -student_t_interval(method.values).mean)
    means = [f"{method.name} {percent(student_t_interval(method.values))}" for method in ordered]
    published = [f"{method.name} {100 * method.published:.2f} %" for method in ordered if method.published is not None]
    beside = f" Published: {'; '.join(published)}." if published else ""
    return f"Means with 95 % intervals over runs, the highest first: {'; '.join(means)}.{beside}"
