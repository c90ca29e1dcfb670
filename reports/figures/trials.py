"""Trials and hyperparameters of a search, the input of its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.ticker import MaxNLocator


@dataclass(frozen=True)
class Parameter:
    """A searched hyperparameter."""

    name: str
    scale: Literal["linear", "log", "int"] = "linear"

    def places(self, trials: Sequence["TrialPoint"]) -> np.ndarray:
        """Return its values in `trials` on the scale of the search. A log scale gives logarithms to base 10."""
        values = np.array([trial.parameters[self.name] for trial in trials], dtype=float)
        return np.log10(values) if self.scale == "log" else values

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Return ticks between two places on the scale: the place and the text of its value."""
        places = MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=self.scale == "int").tick_values(low, high)
        inside = [float(place) for place in places if low <= place <= high]
        return [(place, _short(10**place) if self.scale == "log" else f"{place:.4g}") for place in inside]

    def range_of(self, trials: Sequence["TrialPoint"]) -> str:
        """Return the text of its lowest and its highest value in `trials`."""
        values = [trial.parameters[self.name] for trial in trials]
        return f"{min(values):.3g} to {max(values):.3g}"

    @property
    def label(self) -> str:
        """Its name, with the scale if this is logarithmic."""
        return f"{self.name} (log)" if self.scale == "log" else self.name


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


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:.6g}" if value >= 1000 else f"{value:.3g}"


def finished(trials: Sequence[TrialPoint]) -> list[tuple[TrialPoint, float]]:
    """Return the trials that have a value, each with its value, in the order of their numbers."""
    ordered = sorted(trials, key=lambda trial: trial.number)
    return [(trial, trial.value) for trial in ordered if trial.value is not None]


@dataclass(frozen=True)
class SearchHistory:
    """The search of one method.

    Attributes:
        startup: Number of start-up trials, which the sampler spreads before it learns from values.
    """

    trials: tuple[TrialPoint, ...]
    parameters: tuple[Parameter, ...]
    startup: int = 0
