"""Figure of a search: its trials in order, and the best value up to each trial."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.figures.style import BLUE, GREY, INK, ORANGE, PAGE_WIDTH, FigureError, Look, new_figure, styled
from reports.figures.trials import TrialPoint, finished


@styled
def search_history(trials: Sequence[TrialPoint], startup: int = 0) -> Figure:
    """Draw the value of every trial against its number from 1, and the best value up to each trial as a step line.

    A failed trial is a cross on the lower edge. A trial that got no more folds in a race is an empty circle at its
    expected score.

    Args:
        startup: Number of start-up trials, which are shaded. The sampler spreads them before it learns from values.
    """
    done = finished(trials)
    if not done:
        raise FigureError("the search history needs a trial with a value")
    figure = new_figure(3.1, PAGE_WIDTH)
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
    axes.set_ylabel("validation MAP@R, %\n(mean over folds)")
    axes.grid(axis="y")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def caption(trials: Sequence[TrialPoint]) -> str:
    """Explain the values of the trials, which of them were raced, and why some failed."""
    raced = sum(trial.raced for trial in trials)
    about_raced = (
        f" {raced} of {len(trials)} trials were clearly behind and got no more folds; their value is an estimate."
    )
    return (
        "Each trial is one setting, trained on every fold. The best trial is chosen by this value, so the value is "
        "too high on average. The tables show new trainings with the best setting."
        + (about_raced if raced else "")
        + about_failed(trials)
    )


def about_failed(trials: Sequence[TrialPoint]) -> str:
    """Say which trials failed and why, each reason once; empty if none failed."""
    numbers: dict[str, list[str]] = {}
    for trial in trials:
        if trial.reason is not None:
            numbers.setdefault(trial.reason, []).append(str(trial.number + 1))
    reasons = "; ".join(f"{', '.join(which)} ({reason})" for reason, which in numbers.items())
    return f" Failed, since the method does not take the setting: {reasons}." if numbers else ""


def alternative_text(trials: Sequence[TrialPoint]) -> str:
    """Describe the values of a search: range, median, and when the best was reached."""
    done = finished(trials)
    values = 100 * np.array([value for _, value in done])
    best = int(values.argmax())
    failed = len(trials) - len(done)
    return (
        f"Validation MAP@R of {len(done)} trials, from {values.min():.2f} % to {values.max():.2f} %, median "
        f"{np.median(values):.2f} %. The best trial is number {done[best][0].number + 1}; the first trial has "
        f"{values[0]:.2f} %." + (f" {failed} trial{'s' if failed > 1 else ''} failed." if failed else "")
    )
