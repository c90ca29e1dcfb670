"""Figure of a score against a number: a hyperparameter, the batch size, the size of the embedding."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log2, log10
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.figures.intervals import IntervalUnit
from reports.figures.style import GREY, PAGE_WIDTH, WIDTH, FigureError, Look, new_figure, sign, styled
from results.statistics.intervals import Interval
from results.statistics.primary_comparison import method_intervals, unit_of, unit_values
from results.statistics.run_values import EmbeddingKind, values_by_run
from results.store.experiment_results import MeasuredExperiment

AxisScale = Literal["linear", "log2", "log10", "steps"]
"""Distances on the axis of the number. `steps` puts the values at equal distances, in their order."""

CAPTION_OF_BATCH_SIZES = "From the panels of this experiment that differ only in batch size."
_COLUMNS, _FEW_VALUES = 3, 5
_FEW_TICKS = 12
_MOST_BARS = 20
"""A line with more numbers, such as a curve over epochs, has a band in place of bars."""


@dataclass(frozen=True)
class Point:
    """A score at one number, as fractions of 1: `values` are means of searches where they are repeated, else runs."""

    values: tuple[float, ...]
    interval: Interval
    unit: IntervalUnit = "run"


def points_of(measured: MeasuredExperiment, metric: str, kind: EmbeddingKind) -> dict[str, Point]:
    """Return the score of each method with runs, or with a complete search where searches are repeated."""
    by_run = values_by_run(measured.records, metric, kind)
    values, intervals = unit_values(measured, by_run), method_intervals(measured, by_run)
    unit: IntervalUnit = "search" if unit_of(measured.summary.experiment) == "search" else "run"
    return {key: Point(values[key].units, intervals[key], unit) for key in by_run if values[key].units}


@dataclass(frozen=True)
class Dependence:
    """Scores of one line of the figure, by number.

    Attributes:
        published: Published scores by number, as fractions of 1.
    """

    name: str
    points: Mapping[float, Point]
    published: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DependencePanel:
    """One panel of the figure."""

    title: str
    parameter: str
    series: tuple[Dependence, ...]
    scale: AxisScale = "linear"

    @property
    def numbers(self) -> list[float]:
        """All numbers with runs or published scores, in rising order."""
        return sorted({number for line in self.series for number in (*line.points, *line.published)})


@styled
def dependence_plot(panels: Sequence[DependencePanel], metric: str = "MAP@R", *, stacked: bool = False) -> Figure:
    """Draw mean and 95 % interval of each number, with one line per series.

    Lines are shifted a little sideways so that their intervals do not cover each other. The small points are single
    searches or runs; they are drawn for at most five. Hollow markers are published scores. Each panel has its own axes.
    Up to three panels stand beside each other.
    """
    if not panels or not all(any(line.points for line in panel.series) for panel in panels):
        raise FigureError("the figure of a score against a number needs at least one run in every panel")
    columns = 1 if stacked else min(len(panels), _COLUMNS)
    rows, most = ceil(len(panels) / columns), max(len(panel.numbers) for panel in panels)
    width = PAGE_WIDTH if stacked else max(WIDTH if most > _FEW_TICKS else 4.8, 3.5 * columns)
    figure = new_figure(3.5 * rows, width=width)
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.series))
    grid = list(figure.subplots(rows, columns, squeeze=False).ravel())
    row, empty = grid[: len(panels)], grid[len(panels) :]
    for axes, panel in zip(row, panels, strict=True):
        _draw_panel(axes, panel, names)
    for axes in empty:
        axes.set_axis_off()
    row[0].set_ylabel(f"{metric}, %")
    figure.supxlabel(_runs_note(panels), fontsize=8.5)
    _legend(figure, row, names, published=any(line.published for panel in panels for line in panel.series))
    return figure


def _draw_panel(axes: Axes, panel: DependencePanel, names: Sequence[str]) -> None:
    numbers = panel.numbers
    positions = {number: _position(number, panel.scale, numbers) for number in numbers}
    gap = min(np.diff(list(positions.values())), default=1.0)
    for place, line in enumerate(panel.series):
        shift = 0.06 * gap * (place - (len(panel.series) - 1) / 2)
        shifted = {number: position + shift for number, position in positions.items()}
        _draw_line(axes, line, names.index(line.name), shifted)
    if panel.scale != "linear" or len(numbers) <= _FEW_TICKS:
        labels = [f"{number:g}" for number in numbers]
        crowded = sum(map(len, labels)) > 40
        axes.set_xticks(list(positions.values()), labels, rotation=90 if crowded else 0)
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(panel.parameter)
    axes.grid()


def _position(number: float, scale: AxisScale, numbers: Sequence[float]) -> float:
    """Where a number stands on the axis. The axis is always linear in these positions; its ticks name the numbers.

    Numbers that have no logarithm stand at equal distances.
    """
    if scale == "steps" or (scale != "linear" and numbers[0] <= 0):
        return float(numbers.index(number))
    if scale == "linear":
        return number
    return log2(number) if scale == "log2" else log10(number)


def _draw_line(axes: Axes, line: Dependence, index: int, positions: Mapping[float, float]) -> None:
    look = sign(index)
    numbers = sorted(line.points)
    intervals = [line.points[number].interval for number in numbers]
    means = [100 * interval.mean for interval in intervals]
    halves = [np.nan if interval.half_width is None else 100 * interval.half_width for interval in intervals]
    places = [positions[number] for number in numbers]
    if len(numbers) > _MOST_BARS:
        low, high = np.subtract(means, halves), np.add(means, halves)
        axes.plot(places, means, label=line.name, markevery=len(numbers) // 8, **{**look, "markersize": 4})
        axes.fill_between(places, low, high, color=look["color"], alpha=0.18, linewidth=0)
    else:
        thin: Look = {"capsize": 3, "elinewidth": 0.9, "capthick": 0.9}
        axes.errorbar(places, means, yerr=halves, label=line.name, **thin, **look)
    for number in numbers:
        values = line.points[number].values
        if 1 < len(values) <= _FEW_VALUES and len(numbers) <= _MOST_BARS:
            dots: Look = {"color": look["color"], "marker": ".", "markersize": 4.5, "alpha": 0.7, "linestyle": ""}
            axes.plot([positions[number]] * len(values), 100 * np.asarray(values), **dots)
    if line.published:
        shown = sorted(line.published)
        hollow: Look = {**look, "linestyle": ":", "linewidth": 0.8, "markerfacecolor": "white", "alpha": 0.8}
        axes.plot([positions[n] for n in shown], [100 * line.published[n] for n in shown], label="_published", **hollow)


def number_of_values(points: Iterable[Point]) -> str:
    """Return what the intervals of some points are over, such as `n = 3 searches` or `n = 1 to 3 runs`."""
    counts = sorted({(len(point.values), point.unit) for point in points})
    (fewest, _), (most, unit) = counts[0], counts[-1]
    number = f"{most}" if fewest == most else f"{fewest} to {most}"
    return f"n = {number} {unit}{'' if most == 1 else 'es' if unit == 'search' else 's'}"


def _runs_note(panels: Sequence[DependencePanel]) -> str:
    points = [point for panel in panels for line in panel.series for point in line.points.values()]
    if all(len(point.values) == 1 for point in points):
        return f"one {points[0].unit} per point"
    return f"mean and 95 % interval, {number_of_values(points)}"


def _legend(figure: Figure, row: Sequence[Axes], names: Sequence[str], *, published: bool) -> None:
    keys = {label: handle for axes in row for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    handles: dict[str, Artist] = {name: keys[name] for name in names if name in keys}
    if published:
        handles["published"] = Line2D([], [], color=GREY, linestyle=":", marker="o", markerfacecolor="white")
    if len(handles) > 1:
        columns = max(1, min(len(handles), int(figure.get_figwidth() * 13 / max(map(len, handles)))))
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper right", ncols=min(4, columns), handlelength=2.8
        )


def alternative_text(panels: Sequence[DependencePanel], score: str) -> str:
    """Describe the mean of each curve at each value of the setting."""
    texts = []
    for panel in panels:
        for curve in panel.series:
            means = [f"{value:g}: {100 * curve.points[value].interval.mean:.2f} %" for value in sorted(curve.points)]
            texts.append(f"{curve.name} on {panel.title}: {', '.join(means)}")
    return f"Mean {score} by {panels[0].parameter}. {'; '.join(texts)}."
