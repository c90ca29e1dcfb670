"""Figure of a score against a number: a hyperparameter, the batch size, the size of the embedding, the epoch."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.figures.style import GREY, WIDTH, FigureError, Look, legend_keys, new_figure, sign, styled
from results.wording import plural

_COLUMNS, _FEW_VALUES = 3, 5
_FEW_TICKS = 12


@styled
def dependence_plot(frame: pd.DataFrame, label: str, metric: str) -> Figure:
    """Draw mean and 95 % interval of each number, with a panel for each of the frame and a line for each of its lines.

    The numbers stand at equal distances, in their order. Lines are shifted a little sideways so that their intervals do
    not cover each other. The small points are single searches or runs; they are drawn for at most five. Hollow markers
    are published scores. Each panel has its own axes.

    Args:
        frame: A row for each point: panel, line, x, mean, half_width, n, unit, values, published.
        label: Name of the number on its axis.
    """
    panels = list(frame.groupby("panel", sort=False))
    if not panels or not all((own["n"] > 0).any() for _, own in panels):
        raise FigureError("the figure of a score against a number needs at least one run in every panel")
    columns = min(len(panels), _COLUMNS)
    rows, most = ceil(len(panels) / columns), max(own["x"].nunique() for _, own in panels)
    figure = new_figure(3.5 * rows, width=max(WIDTH if most > _FEW_TICKS else 4.8, 3.5 * columns))
    grid = list(figure.subplots(rows, columns, squeeze=False).ravel())
    names = list(dict.fromkeys(frame["line"]))
    for axes, (title, own) in zip(grid, panels, strict=False):
        _draw_panel(axes, own, names)
        axes.set_title(str(title), loc="left")
        axes.set_xlabel(label)
        axes.grid()
    for empty in grid[len(panels) :]:
        empty.set_axis_off()
    grid[0].set_ylabel(f"{metric}, %")
    single = (frame.loc[frame["n"] > 0, "n"] == 1).all()
    note = f"one {frame['unit'].dropna().iloc[0]} per point" if single else f"mean and 95 % interval, {over(frame)}"
    figure.supxlabel(note, fontsize=8.5)
    _legend(figure, grid, published=bool(frame["published"].notna().any()))
    return figure


def over(frame: pd.DataFrame) -> str:
    """Return what the intervals of some points are over, such as `n = 3 searches` or `n = 1 to 3 runs`."""
    counts = sorted({(len(row.values), row.unit) for row in _rows(frame) if row.n})
    (fewest, _), (most, unit) = counts[0], counts[-1]
    number = f"{most}" if fewest == most else f"{fewest} to {most}"
    return f"n = {number} {unit if most == 1 else plural(unit)}"


def _rows(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples())


def _draw_panel(axes: Axes, frame: pd.DataFrame, names: Sequence[str]) -> None:
    numbers = sorted(set(frame["x"]))
    lines = list(frame.groupby("line", sort=False))
    for place, (name, own) in enumerate(lines):
        shift = 0.06 * (place - (len(lines) - 1) / 2)
        placed = own.assign(at=[numbers.index(number) + shift for number in own["x"]]).sort_values("x")
        _draw_line(axes, str(name), placed, sign(names.index(str(name))))
    labels = [f"{number:g}" for number in numbers]
    axes.set_xticks(range(len(numbers)), labels, rotation=90 if sum(map(len, labels)) > 40 else 0)


def _draw_line(axes: Axes, name: str, frame: pd.DataFrame, look: Look) -> None:
    measured, printed = frame[frame["n"] > 0], frame[frame["published"].notna()]
    halves = 100 * measured["half_width"].astype(float)
    means = 100 * measured["mean"].astype(float)
    axes.errorbar(measured["at"], means, yerr=halves, label=name, capsize=3, elinewidth=0.9, capthick=0.9, **look)
    dots: Look = {"color": look["color"], "marker": ".", "markersize": 4.5, "alpha": 0.7, "linestyle": ""}
    for row in _rows(measured):
        if 1 < len(row.values) <= _FEW_VALUES:
            axes.plot([row.at] * len(row.values), 100 * np.asarray(row.values), **dots)
    if len(printed):
        hollow: Look = {**look, "linestyle": ":", "linewidth": 0.8, "markerfacecolor": "white", "alpha": 0.8}
        axes.plot(printed["at"], 100 * printed["published"].astype(float), label="_published", **hollow)


def _legend(figure: Figure, grid: Sequence[Axes], *, published: bool) -> None:
    handles, names = legend_keys(*grid)
    if published:
        handles.append(_published_sign())
        names.append("published")
    if len(names) > 1:
        columns = max(1, min(4, len(names), int(figure.get_figwidth() * 13 / max(map(len, names)))))
        figure.legend(handles, names, loc="outside upper right", ncols=columns, handlelength=2.8)


def _published_sign() -> Artist:
    return Line2D([], [], color=GREY, linestyle=":", marker="o", markerfacecolor="white")
