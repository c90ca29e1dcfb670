"""Figure of a search: its trials in order, and the best value up to each trial."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.figures.style import BLUE, GREY, INK, ORANGE, PAGE_WIDTH, WIDTH, FigureError, Look, new_figure, styled
from reports.figures.trials import TrialPoint, finished


@styled
def search_history(
    trials: Sequence[TrialPoint], metric: str = "validation MAP@R", startup: int = 0, width: float = WIDTH
) -> Figure:
    """Draw the value of every trial against its number from 1, and the best value up to each trial as a step line.

    A failed trial is a cross on the lower edge. A trial that got no more folds in a race is an empty circle at its
    expected score.

    Args:
        startup: Number of start-up trials, which are shaded. The sampler spreads them before it learns from values.
    """
    done = finished(trials)
    if not done:
        raise FigureError("the search history needs a trial with a value")
    figure = new_figure(3.1, width)
    axes = figure.add_subplot()
    numbers = np.array([trial.number + 1 for trial, _ in done])
    values = 100 * np.array([value for _, value in done])
    if startup:
        axes.axvspan(0.5, startup + 0.5, color="#f0f0f0", zorder=0, label=f"start-up trials ({startup})")
    last = max(trial.number for trial in trials) + 1
    steps = np.append(np.maximum.accumulate(values), values.max())
    axes.step(np.append(numbers, last), steps, where="post", color=INK, label="best so far")
    raced = np.array([trial.raced for trial, _ in done])
    axes.plot(numbers[~raced], values[~raced], "o", color=BLUE, label="trial")
    if raced.any():
        label = "clearly behind, expected value"
        axes.plot(numbers[raced], values[raced], "o", color=BLUE, markerfacecolor="none", label=label)
    best = int(values.argmax())
    axes.plot(numbers[best], values[best], "*", color=ORANGE, markersize=13, label=f"best: {values[best]:.2f} %")
    failed = [trial.number + 1 for trial in trials if trial.value is None]
    if failed:
        look: Look = {"color": GREY, "linestyle": "", "clip_on": False, "transform": axes.get_xaxis_transform()}
        axes.plot(failed, np.full(len(failed), 0.02), marker="x", label="failed trial", **look)
    axes.set_xlim(0.5, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel(f"trial (n = {len(trials)})")
    axes.set_ylabel(f"{metric}, %\n(mean over folds)")
    axes.grid(axis="y")
    figure.legend(loc="outside upper center", ncols=5 if width > PAGE_WIDTH else 3)
    return figure
