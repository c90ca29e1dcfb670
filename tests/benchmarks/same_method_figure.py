"""Searches of one method, and how often tests call them different."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import BLUE, INK, FigureError, new_figure, sign, styled
from tests.benchmarks.same_method_counts import WrongCalls


@styled
def same_method_figure(
    runs: Sequence[Sequence[float]], calls: Sequence[WrongCalls], alpha: float, score: str
) -> Figure:
    """Draw the runs of every search, and the shares of wrong calls.

    Args:
        runs: Scores of the runs as fractions of 1, by search.
        calls: Wrong calls for each number of searches on a side.
    """
    if not runs or not calls:
        raise FigureError("the figure needs runs of searches and counted calls")
    figure = new_figure(5.6)
    above, below = figure.subplots(2, 1, height_ratios=[1.2, 1])
    _searches(above, runs, score)
    _calls(below, calls, alpha)
    return figure


def _searches(axes: Axes, runs: Sequence[Sequence[float]], score: str) -> None:
    ordered = sorted(runs, key=lambda values: -float(np.mean(values)))
    for place, values in enumerate(ordered, start=1):
        axes.plot([place] * len(values), 100 * np.array(values), "o", color=BLUE, markersize=4, alpha=0.75)
        axes.plot([place - 0.25, place + 0.25], [100 * float(np.mean(values))] * 2, color=INK, linewidth=1.6)
    axes.set_xticks(range(1, len(ordered) + 1))
    axes.set_xlabel("search, the best first (points: runs of the setting that it found; line: their mean)")
    axes.set_ylabel(f"{score} [%]")


def _calls(axes: Axes, calls: Sequence[WrongCalls], alpha: float) -> None:
    for number, test in enumerate(calls[0].shares):
        shares = [100 * call.shares[test] for call in calls]
        axes.plot(range(len(calls)), shares, label=test, **sign(number))
    axes.axhline(100 * alpha, color="0.3", linewidth=0.9, linestyle=":")
    axes.set_xticks(range(len(calls)), [str(call.searches) for call in calls])
    axes.set_xlabel("searches on each side")
    axes.set_ylabel("called different [%]")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best")
