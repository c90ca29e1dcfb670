"""Figure of test scores after every epoch, as mean and spread over runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import WIDTH, FigureError, Look, new_figure, sign, styled


@dataclass(frozen=True)
class Convergence:
    """Test scores of one method after every epoch.

    Attributes:
        epochs: Numbers of the epochs, rising.
        runs: Scores of each run after these epochs, as fractions of 1.
        published: Published scores by epoch, as fractions of 1.
    """

    name: str
    epochs: tuple[int, ...]
    runs: tuple[tuple[float, ...], ...]
    published: Mapping[int, float] = field(default_factory=dict)

    @property
    def mean(self) -> np.ndarray:
        """Mean over runs, by epoch."""
        mean: np.ndarray = np.mean(self.runs, axis=0)
        return mean

    @property
    def deviation(self) -> np.ndarray:
        """Sample standard deviation over runs, by epoch; 0 for one run."""
        if len(self.runs) < 2:
            return np.zeros(len(self.epochs))
        deviation: np.ndarray = np.std(self.runs, axis=0, ddof=1)
        return deviation


@dataclass(frozen=True)
class ConvergencePanel:
    """One panel of the figure."""

    title: str
    curves: tuple[Convergence, ...]


@styled
def convergence_plot(rows: Sequence[Sequence[ConvergencePanel]], metric: str = "R@1") -> Figure:
    """Draw the mean over runs as a line, and one standard deviation around it as a band.

    Hollow markers are published scores, with the colour and marker of their method. The panels of a row share
    their axis of scores.
    """
    panels = [panel for row in rows for panel in row]
    if not panels or not all(panel.curves and all(curve.epochs for curve in panel.curves) for panel in panels):
        raise FigureError("a convergence plot needs at least one test curve in every panel")
    columns = max(map(len, rows))
    width = max(5.6 if columns == 1 else WIDTH, 3.1 * columns)
    figure = new_figure(0.5 + (3.2 if len(rows) == 1 else 2.7) * len(rows), width=width)
    grid = figure.subplots(len(rows), columns, sharey="row", squeeze=False)
    for axes_row, row in zip(grid, rows, strict=True):
        for axes, panel in zip(axes_row, row, strict=False):
            _draw(axes, panel)
        for empty in axes_row[len(row) :]:
            empty.set_axis_off()
    figure.supxlabel("epochs  (line: mean over runs; band: one standard deviation)", fontsize=9)
    figure.supylabel(f"test {metric}, %", fontsize=9)
    return figure


def _draw(axes: Axes, panel: ConvergencePanel) -> None:
    for index, curve in enumerate(panel.curves):
        look = sign(index)
        mean, deviation = 100 * curve.mean, 100 * curve.deviation
        count = f"{len(curve.runs)} run" + "s" * (len(curve.runs) > 1)
        spacing = max(1, len(curve.epochs) // 8)
        axes.plot(curve.epochs, mean, label=f"{curve.name} ({count})", markevery=spacing, **{**look, "markersize": 4})
        if len(curve.runs) > 1:
            band: Look = {"color": look["color"], "alpha": 0.18, "linewidth": 0}
            axes.fill_between(curve.epochs, mean - deviation, mean + deviation, **band)
        if curve.published:
            epochs = sorted(curve.published)
            hollow: Look = {
                "color": look["color"],
                "marker": look["marker"],
                "markerfacecolor": "white",
                "linestyle": "",
            }
            axes.plot(epochs, [100 * curve.published[e] for e in epochs], label=f"{curve.name}, published", **hollow)
    axes.set_title(panel.title, loc="left", fontsize=9)
    axes.grid()
    axes.legend(loc="best", fontsize=7.5)
