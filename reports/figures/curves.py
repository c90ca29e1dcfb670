"""Figure of scores against iterations, with one panel per method: validation scores, or recorded test scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import (
    BLUE,
    INK,
    ORANGE,
    PAGE_WIDTH,
    FigureError,
    Look,
    legend_keys,
    new_figure,
    styled,
)
from results.wording import counted

CAPTION = (
    "The first run of each method, one line per fold. Mean and band end where the first fold stops. The scores in the "
    "tables are measured on the test classes, which are other classes."
)
CAPTION_OF_TEST_SCORES = (
    "Nothing is chosen by these scores. Validation scores chose the kept checkpoint. Peeking would keep the highest "
    "point of each line."
)


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
        _draw(panel, folds, unit)
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


def _draw(axes: Axes, folds: Sequence[FoldCurve], unit: str) -> None:
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
