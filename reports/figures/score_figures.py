"""Figures of scores: methods side by side with their intervals, the trials of a search, and curves of trainings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

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
from results.answer.intervals import Interval
from results.answer.sample import Sample
from results.answer.scaling import Scaling
from results.records.trials import Trial
from results.wording import counted, verb

MethodRuns = tuple[Sequence[float], Interval]
"""Means of a method's searches where they are repeated, else scores of its runs, fractions of 1; and its interval."""

CAPTION_OF_VALIDATIONS = (
    "The first run of each method, one line per fold. Mean and band end where the first fold stops. The scores in the "
    "tables are measured on the test classes, which are other classes."
)
CAPTION_OF_TEST_SCORES = (
    "Nothing is chosen by these scores. Validation scores chose the kept checkpoint. Peeking would keep the highest "
    "point of each line."
)

_LONG_NAME, _WIDE_NAME = 26, 16
"""Numbers of characters after which a name wraps, and leaves the axis too narrow for its label."""

_MOST_TICKS = 12
"""Number of places up to which each has a tick."""


@styled
def interval_plot(
    methods: Mapping[str, MethodRuns],
    score: str,
    sample: Sample,
    scale: Scaling,
) -> Figure:
    """Draw mean and 95 % interval of each method by its title, and its searches or runs as points.

    `sample` says what a point is. A method with one value is a point without interval. The axis does not always start
    at 0. Intervals end at the ends of the scale.
    """
    figure = new_figure(1.35 + 0.33 * len(methods), PAGE_WIDTH)
    axes = figure.add_subplot()
    for row, (values, interval) in enumerate(methods.values()):
        _draw_row(axes, row, values, interval, f"single {sample.value}", scale)
    # A long name wraps, but not inside its number of runs.
    names = [
        fill(f"{name}  (n\u00a0=\u00a0{interval.n})" if interval.n else name, _LONG_NAME)
        for name, (_, interval) in methods.items()
    ]
    axes.set_yticks(range(len(methods)), names)
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")
    # Beside long names the axis is narrower than its label, which then grows to the left.
    wide = max(len(line) for name in names for line in name.splitlines()) > _WIDE_NAME
    axes.set_xlabel(f"{score}\n(mean and 95 % interval over n {sample.values})", loc="right" if wide else "center")
    # A key outside the axes hides no point. It has one entry for each kind of marker.
    figure.legend(*legend_keys(axes), loc="outside upper right", ncols=2)
    return figure


def _draw_row(axes: Axes, row: int, values: Sequence[float], interval: Interval, point: str, scale: Scaling) -> None:
    shown = scale.score_format().shown
    mean = shown(interval.mean)
    if known := interval.within(scale.ends):
        low, high = mean - shown(known[0]), shown(known[1]) - mean
        bar: Look = {"color": INK, "elinewidth": 1.6, "capsize": 4, "capthick": 1.6, "linestyle": ""}
        axes.errorbar(mean, row, xerr=[[low], [high]], label="95 % interval", **bar)
    points = [shown(value) for value in values]
    axes.plot(points, np.full(len(points), row + 0.24), ".", color=GREY, markersize=5, alpha=0.8, label=point)
    axes.plot(mean, row, "o", color=BLUE, markersize=6.5, label="mean")


def caption_of_intervals(sample: Sample) -> str:
    """Explain the points and the intervals."""
    return f"{sample.point} Overlapping intervals do not replace a test. The verdicts above are tests."


@dataclass(frozen=True)
class Places:
    """The places that a method can have on a dataset, first to last, and the one that its mean has."""

    first: int
    of_mean: int
    last: int


@styled
def rank_plot(datasets: Mapping[str, Mapping[str, Places]]) -> Figure:
    """Draw the places that each method can have as a line in a panel for each dataset, with the place of its mean.

    Args:
        datasets: Title of each dataset, and the places of its methods by their titles. All have the same methods, which
            stand in the order of the first dataset.
    """
    order = list(next(iter(datasets.values()), {}))
    if not order or any(set(own) != set(order) for own in datasets.values()):
        raise FigureError("a figure of ranks needs the same methods on every dataset, at least one")
    figure = new_figure(1.15 + 0.27 * len(order))
    panels = figure.subplots(1, len(datasets), sharey=True, squeeze=False).ravel()
    for panel, (title, own) in zip(panels, datasets.items(), strict=True):
        for row, name in enumerate(order):
            places = own[name]
            panel.plot((places.first, places.last), (row, row), "|-", color=BLUE, linewidth=3, label="can have")
            look: Look = {"color": ORANGE, "markersize": 6, "markerfacecolor": "white", "zorder": 5}
            panel.plot(places.of_mean, row, linestyle="", marker="D", label="its mean has", **look)
        panel.set_title(title, loc="left", fontsize=9)
        panel.set_xlim(0.5, len(order) + 0.5)
        panel.set_xticks(range(1, len(order) + 1, 1 if len(order) <= _MOST_TICKS else 4))
        panel.grid()
    panels[0].set_yticks(range(len(order)), [fill(name, _LONG_NAME) for name in order])
    panels[0].set_ylim(len(order) - 0.5, -0.5)
    figure.supxlabel("place of the method (1 is the best)", fontsize=9)
    figure.legend(*legend_keys(panels[0]), loc="outside upper right", ncols=2)
    return figure


@styled
def search_history(trials: Sequence[Trial]) -> Figure:
    """Draw the value of every trial in order, and the best value up to each."""
    values = {trial.number: 100 * trial.score for trial in trials if trial.score is not None}
    if not values:
        raise FigureError("a figure of a search needs a trial with a value")
    figure = new_figure(3.2, PAGE_WIDTH)
    axes = figure.add_subplot()
    raced_ones = {trial.number for trial in trials if trial.state == "raced"}
    for raced, marker in ((False, "o"), (True, "x")):
        shown = {number: value for number, value in values.items() if (number in raced_ones) == raced}
        if shown:
            name = "trial that got no more folds" if raced else "trial"
            axes.plot(list(shown), list(shown.values()), marker, color=GREY if raced else BLUE, label=name)
    best = np.maximum.accumulate(list(values.values()))
    axes.step(list(values), best, where="post", color=ORANGE, label="best so far")
    axes.set(xlabel="trial", ylabel="validation MAP@R, %")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid()
    figure.legend(loc="outside upper right", ncols=3)
    return figure


def caption_of_search(trials: Sequence[Trial]) -> str:
    """Explain the values of the trials, which of them were raced, and why some failed."""
    raced = sum(trial.state == "raced" for trial in trials)
    text = (
        "Each trial is one setting, trained on every fold. The best trial is chosen by this value, so the value is "
        "too high on average. The tables show new trainings with the best setting."
    )
    if raced:
        text += (
            f" {raced} of {counted(len(trials), 'trial')} {verb(raced, 'were')} clearly behind and got no more folds;"
        )
        text += " their value is an estimate."
    failed: dict[str, list[str]] = {}
    for trial in trials:
        if trial.state == "failed" and trial.reason is not None:
            failed.setdefault(trial.reason, []).append(str(trial.number))
    reasons = "; ".join(f"{', '.join(numbers)} ({reason})" for reason, numbers in failed.items())
    return text + (f" Failed, since the method does not take the setting: {reasons}." if reasons else "")


@dataclass(frozen=True)
class FoldCurve:
    """Scores during one training.

    Attributes:
        scores: Fractions of 1, by the number of iterations before each, in order.
        best: Iteration of the kept checkpoint.
    """

    scores: Mapping[int, float]
    best: int


@styled
def score_curves(
    methods: Mapping[str, Sequence[FoldCurve]], metric: str = "validation MAP@R", unit: str = "fold"
) -> Figure:
    """Draw each fold as a thin line with its kept checkpoint, the mean over folds, and the band of all folds.

    All panels have the same axes. Mean and band end where the first fold stopped.

    Args:
        methods: The curves of each method's trainings, by its title.
        unit: What a line belongs to: `fold`, or `run` where each run has one training.
    """
    if not methods:
        raise FigureError("curves need at least one method")
    columns = min(2, len(methods))
    rows = ceil(len(methods) / columns)
    figure = new_figure(0.8 + 2.0 * rows, width=min(PAGE_WIDTH, max(3.8, 2.4 * columns)))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, (name, folds) in zip(panels, methods.items(), strict=False):
        _draw_curves(panel, folds, unit)
        panel.set_title(f"{name} ({counted(len(folds), unit)})", loc="left", fontsize=9)
        panel.grid()
    for empty in panels[len(methods) :]:
        empty.set_axis_off()
    # The lowest panel of each column shows the numbers of the axis.
    for panel in panels[max(0, len(methods) - columns) : len(methods)]:
        panel.tick_params(labelbottom=True)
    figure.supxlabel("iterations", fontsize=9)
    figure.supylabel(f"{metric}, %", fontsize=9)
    figure.legend(*legend_keys(panels[0]), loc="outside upper center", ncols=2)
    return figure


def _draw_curves(axes: Axes, folds: Sequence[FoldCurve], unit: str) -> None:
    # Mean and band end where the first fold stopped, because a mean over fewer folds is a different quantity.
    iterations = sorted(set.intersection(*(set(fold.scores) for fold in folds)))
    scores = np.array([[fold.scores[iteration] for iteration in iterations] for fold in folds])
    band: Look = {"color": BLUE, "alpha": 0.18, "linewidth": 0, "label": f"lowest to highest {unit}"}
    axes.fill_between(iterations, 100 * scores.min(axis=0), 100 * scores.max(axis=0), **band)
    for fold in folds:
        values = [100 * score for score in fold.scores.values()]
        axes.plot(list(fold.scores), values, color=BLUE, linewidth=0.7, alpha=0.7, label=unit)
        look: Look = {"color": ORANGE, "markersize": 4.5, "markerfacecolor": "white", "linestyle": "", "zorder": 5}
        axes.plot(fold.best, 100 * fold.scores[fold.best], marker="D", label="kept checkpoint", **look)
    axes.plot(iterations, 100 * scores.mean(axis=0), color=INK, linewidth=2, label=f"mean of all {unit}s", zorder=4)
