"""The hyperparameters that are searched and their ranges."""

import math
from collections.abc import Sequence
from typing import Literal

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import JsonValue

from results.values import Record


class SearchParameter(Record):
    """One hyperparameter's range. `target` is where it goes, such as `loss.margin` or `loss_optimizer.lr`.

    exhaustive: every whole number from low to high is tried once instead of a search (specification, 11.14).
    """

    target: str
    scale: Literal["linear", "log", "int", "int_log", "choice"]
    low: float | None = None
    high: float | None = None
    choices: tuple[JsonValue, ...] | None = None
    exhaustive: bool = False

    def distribution(self) -> BaseDistribution:
        """The range as Optuna says it."""
        if self.scale == "choice":
            assert self.choices
            return CategoricalDistribution(self.choices)  # type: ignore[arg-type]
        assert self.low is not None
        assert self.high is not None
        if self.scale in ("int", "int_log"):
            return IntDistribution(int(self.low), int(self.high), log=self.scale == "int_log")
        return FloatDistribution(self.low, self.high, log=self.scale == "log")

    def at(self, position: float) -> JsonValue:
        """The value at `position` in [0, 1) of the range, on its scale."""
        if self.scale == "choice":
            assert self.choices
            return self.choices[int(position * len(self.choices))]
        assert self.low is not None
        assert self.high is not None
        low, high = self.low, self.high
        if self.scale in ("int", "int_log"):
            low, high = low - 0.5, high + 0.5
        if self.scale in ("log", "int_log"):
            value = math.exp(math.log(low) + position * (math.log(high) - math.log(low)))
        else:
            value = low + position * (high - low)
        if self.scale in ("int", "int_log"):
            return min(max(round(value), int(self.low)), int(self.high))
        return min(max(value, self.low), self.high)


def settled(space: Sequence[SearchParameter], trials: int) -> tuple[tuple[SearchParameter, ...], int]:
    """The space as it will be searched, and in how many trials.

    A single exhaustive parameter takes one trial per value if `trials` covers them all; otherwise it is searched like
    any other.
    """
    if len(space) == 1 and space[0].exhaustive:
        assert space[0].low is not None
        assert space[0].high is not None
        values = int(space[0].high) - int(space[0].low) + 1
        if trials >= values:
            return tuple(space), values
    return tuple(parameter.model_copy(update={"exhaustive": False}) for parameter in space), trials
