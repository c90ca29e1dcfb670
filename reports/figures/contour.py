"""Figure of the validation score over two hyperparameters (as in CCP, Fig. 3, and Proxy-ISA, Fig. 9 and 10)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation
from scipy.spatial import Delaunay, QhullError

from reports.figures.style import INK, ORANGE, PAGE_WIDTH, SEQUENTIAL, FigureError, Look, new_figure, styled
from reports.figures.trials import Parameter, TrialPoint, finished

FEWEST_TRIALS = 15
"""A surface needs at least this many trials. Between fewer, its shape is that of the interpolation."""


@styled
def search_contour(
    trials: Sequence[TrialPoint],
    x: Parameter,
    y: Parameter,
    title: str = "",
    width: float = 5.4,
) -> Figure:
    """Draw the trials as points in the colour of their value, over a surface that is interpolated between them.

    The surface is piecewise linear on the scales of the search and ends at the outermost trials. Nothing is
    extrapolated. There is no surface for fewer than 15 trials or for trials on one line.
    """
    done = finished(trials)
    if not done:
        raise FigureError(f"the contour over {x.name} and {y.name} needs a trial with a value")
    chosen, values = [trial for trial, _ in done], 100 * np.array([value for _, value in done])
    places = np.column_stack([x.places(chosen), y.places(chosen)])
    figure = new_figure(3.9 if width > PAGE_WIDTH else 3.5, width)
    axes = figure.add_subplot()
    axes.use_sticky_edges = False
    norm = Normalize(values.min(), values.max() if np.ptp(values) else values.min() + 1)
    _surface(axes, places, values, norm)
    look: Look = {"s": 34, "edgecolors": "white", "linewidths": 0.9, "zorder": 3}
    points = axes.scatter(places[:, 0], places[:, 1], c=values, cmap=SEQUENTIAL, norm=norm, **look)
    best = int(values.argmax())
    star: Look = {"marker": "*", "color": ORANGE, "edgecolors": INK, "s": 190, "zorder": 4}
    axes.scatter(*places[best], label=f"best: {values[best]:.2f} %", **star)
    axes.margins(0.06)
    for parameter, axis, (low, high) in ((x, axes.xaxis, axes.get_xlim()), (y, axes.yaxis, axes.get_ylim())):
        ticks = parameter.ticks(low, high)
        axis.set_ticks([place for place, _ in ticks], labels=[text for _, text in ticks])
        axis.set_label_text(parameter.label)
    axes.set_title(title, loc="left")
    figure.colorbar(points, ax=axes, label=f"validation MAP@R, %  (n = {len(done)} trials)")
    figure.legend(loc="outside upper right")
    return figure


def _surface(axes: Axes, places: np.ndarray, values: np.ndarray, norm: Normalize) -> None:
    spread = np.ptp(places, axis=0)
    if len(places) < FEWEST_TRIALS or not spread.all():
        return
    unit = (places - places.min(axis=0)) / spread
    try:
        triangles = Delaunay(unit).simplices
    except QhullError:
        return
    surface = Triangulation(places[:, 0], places[:, 1], triangles)
    levels = np.linspace(norm.vmin or 0, norm.vmax or 1, 13)
    axes.tricontourf(surface, values, levels, cmap=SEQUENTIAL, norm=norm, alpha=0.75, zorder=1)
    axes.tricontour(surface, values, levels[2:-1:2], colors="white", linewidths=0.6, zorder=2)


def caption(trials: Sequence[TrialPoint], *, others: bool) -> str:
    """Explain the surface, and say whether other hyperparameters of the trials differ too."""
    surface = "The surface is interpolated between trials and ends at the outermost trials."
    if len(finished(trials)) < FEWEST_TRIALS:
        surface = f"There is no surface between the trials, because there are fewer than {FEWEST_TRIALS}."
    return surface + (" The other hyperparameters of the trials differ too." if others else "")


def strongest_pair(trials: Sequence[TrialPoint], parameters: Sequence[Parameter]) -> tuple[Parameter, Parameter]:
    """Choose the two parameters with the strongest rank correlation with the values, in the order of the card."""
    if len(parameters) == 2:
        return parameters[0], parameters[1]
    done = finished(trials)
    values = _ranks(np.array([value for _, value in done]))
    strength = {p.name: _correlation(_ranks(p.places([trial for trial, _ in done])), values) for p in parameters}
    chosen = sorted(parameters, key=lambda p: -strength[p.name])[:2]
    first, second = (p for p in parameters if p in chosen)
    return first, second


def _ranks(values: np.ndarray) -> np.ndarray:
    ranks: np.ndarray = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)
    return ranks


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    return abs(float(np.corrcoef(a, b)[0, 1])) if len(a) > 1 and a.std() and b.std() else 0.0


def alternative_text(trials: Sequence[TrialPoint], x: Parameter, y: Parameter) -> str:
    """Describe where the best trial lies, and in which range the trials and their values lie."""
    done = finished(trials)
    best, value = max(done, key=lambda pair: pair[1])
    lowest = min(value for _, value in done)
    points = [trial for trial, _ in done]
    return (
        f"Validation MAP@R of {len(done)} trials from {100 * lowest:.2f} % to {100 * value:.2f} %, over {x.name} "
        f"{x.range_of(points)} and {y.name} {y.range_of(points)}. The best trial has {x.name} "
        f"{best.parameters[x.name]:.3g} and {y.name} {best.parameters[y.name]:.3g}."
    )
