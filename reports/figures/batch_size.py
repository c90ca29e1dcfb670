"""Figure of the score against the batch size (as in CCP, Fig. 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import FigureError, new_figure, sign, styled
from results.statistics.intervals import student_t_interval


@dataclass(frozen=True)
class BatchSizes:
    """Scores of one method on one dataset.

    Attributes:
        name: Name of the method.
        runs: Scores of the runs by batch size, as fractions of 1.
    """

    name: str
    runs: Mapping[int, Sequence[float]]


@styled
def batch_size_dependence(panels: Mapping[str, Sequence[BatchSizes]], metric: str = "MAP@R") -> Figure:
    """Draw mean and 95 % Student-t interval for each batch size, with one line per method and one panel per dataset.

    The axis of batch sizes is logarithmic. Methods are shifted a little sideways so that their intervals do not cover
    each other. Each panel has its own axis of scores.

    Args:
        panels: Methods by dataset.
        metric: Name of the score.

    Raises:
        FigureError: If a panel has no run.
    """
    if not panels or not all(any(any(method.runs.values()) for method in series) for series in panels.values()):
        raise FigureError("the figure of batch sizes needs at least one run in every panel")
    figure = new_figure(3.4, width=max(4.2, 3.5 * len(panels)))
    names = list(dict.fromkeys(method.name for series in panels.values() for method in series))
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, series) in zip(row, panels.items(), strict=True):
        for method in series:
            index = names.index(method.name)
            _draw(axes, method, index, shift=1.025 ** (index - (len(names) - 1) / 2))
        sizes = sorted({size for method in series for size in method.runs})
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set_title(title, loc="left")
        axes.grid()
    methods = [method for series in panels.values() for method in series]
    counts = sorted({len(runs) for method in methods for runs in method.runs.values() if runs})
    count = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    figure.supxlabel(f"batch size  (mean and 95 % Student-t interval, n = {count} runs)", fontsize=9)
    row[0].set_ylabel(f"{metric}, %")
    keys = {label: handle for axes in row for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    shown = [name for name in names if name in keys]
    figure.legend([keys[name] for name in shown], shown, loc="outside upper right", ncols=4)
    return figure


def _draw(axes: Axes, method: BatchSizes, index: int, shift: float) -> None:
    sizes = sorted(size for size, runs in method.runs.items() if runs)
    intervals = [student_t_interval(list(method.runs[size])) for size in sizes]
    means = [100 * interval.mean for interval in intervals]
    halves = [np.nan if interval.half_width is None else 100 * interval.half_width for interval in intervals]
    axes.errorbar(np.array(sizes) * shift, means, yerr=halves, capsize=3, label=method.name, **sign(index))
