"""What a search tried: the input of the figures of searches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.ticker import MaxNLocator


@dataclass(frozen=True)
class Parameter:
    """A searched hyperparameter. name: as in the method's card; scale: as the search draws it."""

    name: str
    scale: Literal["linear", "log", "int"] = "linear"

    def places(self, trials: Sequence["TrialPoint"]) -> np.ndarray:
        """Its values in `trials` on the search's own scale: logarithms to base 10 where that is logarithmic."""
        values = np.array([trial.parameters[self.name] for trial in trials], dtype=float)
        return np.log10(values) if self.scale == "log" else values

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Round places between two places, and the values they stand for."""
        places = MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=self.scale == "int").tick_values(low, high)
        inside = [float(place) for place in places if low <= place <= high]
        return [(place, _short(10**place) if self.scale == "log" else f"{place:.4g}") for place in inside]

    @property
    def label(self) -> str:
        """Its name, and its scale where that is not linear."""
        return f"{self.name} (log)" if self.scale == "log" else self.name


@dataclass(frozen=True)
class TrialPoint:
    """One setting over all folds. number: from 0; value: mean validation score, a fraction of 1; None if it failed."""

    number: int
    parameters: Mapping[str, float]
    value: float | None


def _short(value: float) -> str:
    """Two digits; more before the point, where the value has them."""
    return f"{value:.2g}" if value < 100 else f"{value:.6g}" if value >= 1000 else f"{value:.3g}"


def finished(trials: Sequence[TrialPoint]) -> list[tuple[TrialPoint, float]]:
    """The trials that have a value, with it, in their order."""
    ordered = sorted(trials, key=lambda trial: trial.number)
    return [(trial, trial.value) for trial in ordered if trial.value is not None]


@dataclass(frozen=True)
class SearchHistory:
    """The trials of one method. parameters: those with numbers, on their search's scale.

    startup: how many first trials were spread before the sampler learned.
    """

    trials: tuple[TrialPoint, ...]
    parameters: tuple[Parameter, ...]
    startup: int = 0
