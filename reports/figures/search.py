"""Figures of a search: Optuna's own plots of its trials. Optuna is imported when the first is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from reports.figures.style import PAGE_WIDTH, FigureError

if TYPE_CHECKING:
    import optuna

_VALUE = "validation MAP@R"
_MARGINS = {"left": 0.17, "right": 0.88, "bottom": 0.3, "top": 0.95}

CAPTION_OF_PAIR = "The surface is interpolated between the trials, whose other hyperparameters differ too."


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
    """The search of one method."""

    trials: tuple[TrialPoint, ...]
    parameters: tuple[Parameter, ...]

    @property
    def values(self) -> dict[int, float]:
        """Values of the trials that have one, by number of the trial."""
        return {trial.number: trial.value for trial in self.trials if trial.value is not None}

    @property
    def best(self) -> TrialPoint:
        """The trial with the highest value, the first of equal ones."""
        values = self.values
        return next(trial for trial in self.trials if trial.value == max(values.values()))


def search_history(search: SearchHistory) -> Figure:
    """Draw the value of every trial in order, and the best value up to each."""
    return _drawn(search, "plot_optimization_history")


def search_contour(search: SearchHistory, x: str, y: str) -> Figure:
    """Draw the trials over a surface of their values that is interpolated between them."""
    return _drawn(search, "plot_contour", params=[x, y])


def strongest_pair(search: SearchHistory) -> tuple[str, str]:
    """Return the two parameters with the strongest rank correlation with the values, the strongest first."""
    from scipy.stats import spearmanr

    def strength(name: str) -> float:
        done = [one for one in search.trials if one.value is not None and name in one.parameters]
        chosen = [one.parameters[name] for one in done]
        return abs(spearmanr(chosen, [one.value for one in done]).statistic) if len(set(chosen)) > 1 else 0.0

    first, second = sorted((one.name for one in search.parameters), key=strength, reverse=True)[:2]
    return first, second


def _drawn(search: SearchHistory, plot: str, **options: Any) -> Figure:
    from optuna.exceptions import ExperimentalWarning
    from optuna.visualization import matplotlib as plots

    if not search.values:
        raise FigureError("a figure of a search needs a trial with a value")
    # Optuna draws with pyplot and changes its settings.
    plt.switch_backend("agg")
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        axes = getattr(plots, plot)(study_of(search), target_name=_VALUE, **options)
        figure: Figure = axes.figure
        plt.close(figure)
        axes.set_title("")
        if (legend := axes.get_legend()) is not None:
            legend.remove()
            axes.legend(loc="best")
        for axis in (axis for each in figure.axes for axis in (each.xaxis, each.yaxis) if axis.get_scale() == "log"):
            # Figures show no formulas, and Optuna's labels of powers are some.
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        figure.set_size_inches(PAGE_WIDTH, 3.4)
        figure.subplots_adjust(**_MARGINS)
    return figure


def study_of(search: SearchHistory) -> optuna.Study:
    """Return the search as a study of Optuna in memory."""
    import optuna
    from optuna.trial import TrialState

    def distribution(parameter: Parameter) -> optuna.distributions.BaseDistribution:
        values = [one.parameters[parameter.name] for one in search.trials if parameter.name in one.parameters]
        if parameter.scale == "int":
            return optuna.distributions.IntDistribution(int(min(values)), int(max(values)))
        return optuna.distributions.FloatDistribution(min(values), max(values), log=parameter.scale == "log")

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    optuna.logging.set_verbosity(verbosity)
    distributions = {one.name: distribution(one) for one in search.parameters}
    for trial in sorted(search.trials, key=lambda one: one.number):
        known = {name: distributions[name] for name in trial.parameters if name in distributions}
        setting = {name: trial.parameters[name] for name in known}
        state = TrialState.FAIL if trial.value is None else TrialState.COMPLETE
        study.add_trial(optuna.trial.create_trial(params=setting, distributions=known, value=trial.value, state=state))
    return study


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
    failed: dict[str, list[str]] = {}
    for trial in search.trials:
        if trial.reason is not None:
            failed.setdefault(trial.reason, []).append(str(trial.number))
    reasons = "; ".join(f"{', '.join(numbers)} ({reason})" for reason, numbers in failed.items())
    return text + (f" Failed, since the method does not take the setting: {reasons}." if reasons else "")


def alternative_text(search: SearchHistory) -> str:
    """Describe the values of a search, and its best trial."""
    values, best = search.values, search.best
    setting = ", ".join(f"{name} {value:.3g}" for name, value in best.parameters.items())
    return (
        f"Validation MAP@R of {len(values)} trials, from {100 * min(values.values()):.2f} % to "
        f"{100 * max(values.values()):.2f} %. The best trial is number {best.number}, with {setting}."
    )
