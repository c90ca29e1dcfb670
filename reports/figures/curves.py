"""Figure of scores against iterations, with one panel per method: validation scores, or recorded test scores."""

from collections.abc import Sequence
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

CAPTION = (
    "Reproduction 0 of each method, one line per fold. Mean and band end where the first fold stops. The scores in the "
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
        iterations: Number of iterations before each score.
        values: Scores as fractions of 1.
        best: Iteration of the kept checkpoint.
    """

    iterations: tuple[int, ...]
    values: tuple[float, ...]
    best: int


@dataclass(frozen=True)
class MethodCurves:
    """The curves of one method, one per training."""

    name: str
    folds: tuple[FoldCurve, ...]

    @property
    def common(self) -> tuple[tuple[int, ...], np.ndarray]:
        """Iterations at which every fold was validated, and the scores (folds x iterations).

        They end where the first fold stopped, because a mean over fewer folds is a different quantity.
        """
        shared = sorted(set.intersection(*(set(fold.iterations) for fold in self.folds)))
        tables = [dict(zip(fold.iterations, fold.values, strict=True)) for fold in self.folds]
        return tuple(shared), np.array([[table[iteration] for iteration in shared] for table in tables])


@styled
def score_curves(methods: Sequence[MethodCurves], metric: str = "validation MAP@R", unit: str = "fold") -> Figure:
    """Draw each fold as a thin line with its kept checkpoint, the mean over folds, and the band of all folds.

    All panels have the same axes. Mean and band end where the first fold stopped.

    Args:
        unit: What a line belongs to: `fold`, or `run` where each run has one training.
    """
    if not methods or not all(method.folds for method in methods):
        raise FigureError("curves need at least one method, and at least one fold of each method")
    columns = min(2, len(methods))
    rows = ceil(len(methods) / columns)
    figure = new_figure(0.8 + 2.0 * rows, width=min(PAGE_WIDTH, max(3.8, 2.4 * columns)))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, method in zip(panels, methods, strict=False):
        _draw(panel, method, unit)
        lines = f"{len(method.folds)} {unit}" + "s" * (len(method.folds) > 1)
        panel.set_title(f"{method.name} ({lines})", loc="left", fontsize=9)
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


def _draw(axes: Axes, method: MethodCurves, unit: str) -> None:
    iterations, scores = method.common
    band: Look = {"color": BLUE, "alpha": 0.18, "linewidth": 0, "label": f"lowest to highest {unit}"}
    axes.fill_between(iterations, 100 * scores.min(axis=0), 100 * scores.max(axis=0), **band)
    for fold in method.folds:
        axes.plot(fold.iterations, 100 * np.asarray(fold.values), color=BLUE, linewidth=0.7, alpha=0.7, label=unit)
        score = 100 * fold.values[fold.iterations.index(fold.best)]
        look: Look = {"color": ORANGE, "markersize": 4.5, "markerfacecolor": "white", "linestyle": "", "zorder": 5}
        axes.plot(fold.best, score, marker="D", label="kept checkpoint", **look)
    axes.plot(iterations, 100 * scores.mean(axis=0), color=INK, linewidth=2, label=f"mean of all {unit}s", zorder=4)
