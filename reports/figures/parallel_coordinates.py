"""Figure of all trials of a search as lines across its hyperparameters."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from reports.figures.style import (
    GREY,
    INK,
    ORANGE,
    PAGE_WIDTH,
    SEQUENTIAL,
    FigureError,
    Look,
    new_figure,
    styled,
)
from reports.figures.trials import Parameter, TrialPoint, finished

CAPTION = "The colour is the validation MAP@R."
_METRIC, _BEST_TRIALS = "validation MAP@R", 5


@styled
def parallel_coordinates(trials: Sequence[TrialPoint], parameters: Sequence[Parameter]) -> Figure:
    """Draw one line per trial over the axes of the hyperparameters, in the colour of its value.

    The last axis is the value in percent. The best trial is a thick line with markers.
    """
    done = sorted(finished(trials), key=lambda pair: pair[1])
    if not done or not parameters:
        raise FigureError("parallel coordinates need a parameter and a trial with a value")
    chosen = [trial for trial, _ in done]
    values = 100 * np.array([value for _, value in done])
    columns = [*(parameter.places(chosen) for parameter in parameters), values]
    ends = [_ends(column) for column in columns]
    heights = np.array([(column - low) / (high - low) for column, (low, high) in zip(columns, ends, strict=True)])

    figure = new_figure(3.6, PAGE_WIDTH)
    axes = figure.add_subplot()
    norm = Normalize(*_ends(values))
    colours = mpl.colormaps[SEQUENTIAL](norm(values))
    places = range(len(columns))
    for line, colour in zip(heights.T[:-1], colours, strict=False):
        axes.plot(places, line, color=colour, linewidth=1.1, alpha=0.85)
    look: Look = {"color": ORANGE, "linewidth": 2.6, "marker": "D", "markersize": 5, "zorder": 5}
    axes.plot(places, heights.T[-1], label=f"best trial: {values[-1]:.2f} %", **look)
    for place, parameter, (low, high) in zip(places, [*parameters, Parameter(_METRIC)], ends, strict=True):
        _ruler(axes, place, parameter, low, high, slanted=len(columns) > 2)
    axes.set_axis_off()
    axes.set_xlim(-0.15, len(columns) - 1 + 0.25)
    axes.set_ylim(-0.06, 1.12)
    bar = figure.colorbar(mpl.cm.ScalarMappable(norm, SEQUENTIAL), ax=axes, pad=0.01, fraction=0.03)
    bar.set_label(f"{_METRIC}, %  (n = {len(done)} trials)")
    figure.legend(loc="outside upper right")
    return figure


def _ends(column: np.ndarray) -> tuple[float, float]:
    low, high = float(column.min()), float(column.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ruler(axes: Axes, place: float, parameter: Parameter, low: float, high: float, *, slanted: bool) -> None:
    axes.plot([place, place], [0, 1], color=GREY, linewidth=1, zorder=3)
    for tick, text in parameter.ticks(low, high):
        height = (tick - low) / (high - low)
        axes.plot([place - 0.015, place + 0.015], [height, height], color=GREY, linewidth=1, zorder=3)
        box: Look = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        axes.text(place + 0.03, height, text, va="center", fontsize=7.5, color=INK, zorder=6, bbox=box)
    look: Look = {"rotation": 25, "ha": "left"} if slanted else {"ha": "center"}
    axes.text(place, 1.05 if slanted else 1.07, parameter.label, va="bottom", fontsize=8.5, **look)


def alternative_text(trials: Sequence[TrialPoint], parameters: Sequence[Parameter]) -> str:
    """Describe where the best trials lie on each axis, within the range of all trials."""
    done = [trial for trial, _ in sorted(finished(trials), key=lambda pair: -pair[1])]
    best = done[:_BEST_TRIALS]
    ranges = [
        f"{parameter.name} {parameter.range_of(best)} (all trials {parameter.range_of(done)})"
        for parameter in parameters
    ]
    count = f"{len(done)} lines, one per trial, over {len(parameters)} hyperparameters"
    return f"{count}. The best {len(best)} trials: {'; '.join(ranges)}."
