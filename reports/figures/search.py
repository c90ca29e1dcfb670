"""Figures of a search: its trials in order, and over the two hyperparameters that matter most."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.figures.style import BLUE, GREY, ORANGE, PAGE_WIDTH, FigureError, new_figure, styled

_VALUE = "validation MAP@R, %"

CAPTION_OF_PAIR = "The star is the best trial. The other hyperparameters of the trials differ too."


@dataclass(frozen=True)
class Parameter:
    """A searched hyperparameter."""

    name: str
    scale: Literal["linear", "log", "int"] = "linear"


@dataclass(frozen=True)
class TrialPoint:
    """One trial: a setting that was trained on all folds.

    Attributes:
        number: Number of the trial, from 0.
        value: Mean validation score as a fraction of 1; None for a failed trial.
        raced: Whether the trial got no more folds because it was clearly behind. Its value is then an expected score.
        reason: Why the trial failed; None for other trials.
    """

    number: int
    parameters: Mapping[str, float]
    value: float | None
    raced: bool = False
    reason: str | None = None


@dataclass(frozen=True)
class SearchHistory:
    """The search of one method.

    Attributes:
        importances: Share of each hyperparameter in what separates the best trials from the others, over all searches
            of the method; empty if unknown.
    """

    trials: tuple[TrialPoint, ...]
    parameters: tuple[Parameter, ...]
    importances: Mapping[str, float] = field(default_factory=dict)

    @property
    def values(self) -> dict[int, float]:
        """Values of the trials that have one, by number of the trial."""
        return {trial.number: trial.value for trial in self.trials if trial.value is not None}

    @property
    def done(self) -> list[TrialPoint]:
        """The trials that have a value."""
        return [trial for trial in self.trials if trial.value is not None]


@styled
def search_history(search: SearchHistory) -> Figure:
    """Draw the value of every trial in order, and the best value up to each."""
    figure, axes = _empty(search)
    for raced, marker in ((False, "o"), (True, "x")):
        shown = {one.number: 100 * search.values[one.number] for one in search.done if one.raced == raced}
        if shown:
            name = "trial that got no more folds" if raced else "trial"
            axes.plot(list(shown), list(shown.values()), marker, color=GREY if raced else BLUE, label=name)
    values = [100 * value for value in search.values.values()]
    axes.step(list(search.values), np.maximum.accumulate(values), where="post", color=ORANGE, label="best so far")
    axes.set(xlabel="trial", ylabel=_VALUE)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid()
    figure.legend(loc="outside upper right", ncols=3)
    return figure


@styled
def search_plane(search: SearchHistory, x: str, y: str) -> Figure:
    """Draw the trials over two hyperparameters, coloured by their values; a star marks the best."""
    figure, axes = _empty(search)
    done = [one for one in search.done if {x, y} <= one.parameters.keys()]
    values = [100 * search.values[one.number] for one in done]
    across, up = ([one.parameters[name] for one in done] for name in (x, y))
    points = axes.scatter(across, up, c=values, cmap="cividis", s=36, edgecolors=GREY, linewidths=0.5)
    best = int(np.argmax(values))
    axes.scatter(across[best], up[best], marker="*", s=150, c=ORANGE, edgecolors="white", zorder=3)
    scales = {parameter.name: "log" if parameter.scale == "log" else "linear" for parameter in search.parameters}
    axes.set(xlabel=x, ylabel=y, xscale=scales[x], yscale=scales[y])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    figure.colorbar(points, label=_VALUE)
    axes.grid()
    return figure


def _empty(search: SearchHistory) -> tuple[Figure, Axes]:
    if not search.values:
        raise FigureError("a figure of a search needs a trial with a value")
    figure = new_figure(3.2, PAGE_WIDTH)
    return figure, figure.add_subplot()


def strongest_pair(search: SearchHistory) -> tuple[str, str]:
    """Return the two parameters of the largest importance, the largest first."""
    names = sorted((one.name for one in search.parameters), key=lambda name: -search.importances.get(name, 0.0))
    return names[0], names[1]


def caption(search: SearchHistory) -> str:
    """Explain the values of the trials, which of them were raced, and why some failed."""
    raced = sum(trial.raced for trial in search.trials)
    text = (
        "Each trial is one setting, trained on every fold. The best trial is chosen by this value, so the value is "
        "too high on average. The tables show new trainings with the best setting."
    )
    if raced:
        text += f" {raced} of {len(search.trials)} trials were clearly behind and got no more folds; their value is an"
        text += " estimate."
    if search.importances:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in search.importances.items())
        text += f" What separates the best quarter of the whole trials of all searches (PED-ANOVA): {shares}."
    failed: dict[str, list[str]] = {}
    for trial in search.trials:
        if trial.reason is not None:
            failed.setdefault(trial.reason, []).append(str(trial.number))
    reasons = "; ".join(f"{', '.join(numbers)} ({reason})" for reason, numbers in failed.items())
    return text + (f" Failed, since the method does not take the setting: {reasons}." if reasons else "")
