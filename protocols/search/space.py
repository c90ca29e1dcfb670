"""The search space: hyperparameters and their ranges."""

import math
from collections.abc import Sequence
from decimal import Decimal

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import Field, JsonValue, model_validator

from results.spec.search_settings import Scale, SearchedRange, check_bounds
from results.values import Record


class SearchParameter(Record):
    """The range of one hyperparameter.

    Attributes:
        target: Where the value goes in the method, such as `loss.margin` or `loss_optimizer.lr`.
        scale: `linear` or `log` for numbers, `int` or `int_log` for whole numbers, `choice` for a list of values.
        low: Lower end of the range, included; not for `choice`.
        high: Upper end of the range, included; not for `choice`.
        step: Distance of the values from `low` on; None allows all values between the ends.
        choices: The values of a `choice`.
        exhaustive: Try every whole number from `low` to `high` once instead of a search (specification, 11.14).
    """

    target: str
    scale: Scale
    low: float | None = None
    high: float | None = None
    step: float | None = Field(default=None, exclude_if=lambda value: value is None)
    choices: tuple[JsonValue, ...] | None = None
    exhaustive: bool = False

    @model_validator(mode="after")
    def _bounds_fit(self) -> "SearchParameter":
        numbers = (self.low, self.high, self.step) != (None, None, None)
        if (self.scale == "choice") != bool(self.choices) or (self.choices and numbers):
            raise ValueError("needs either choices or a scale of numbers with low and high")
        if self.low is not None and self.high is not None:
            check_bounds(self.scale, self.low, self.high, self.step)
        choices = self.choices or ()
        if twice := [choice for place, choice in enumerate(choices) if choice in choices[:place]]:
            raise ValueError(f"{self.target}: the choice {twice[0]!r} equals one before it; name each once")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end of the range of numbers."""
        assert self.low is not None
        assert self.high is not None
        return self.low, self.high

    @property
    def extremes(self) -> tuple[JsonValue, ...]:
        """Both ends of a range; all choices."""
        if self.scale == "choice":
            assert self.choices
            return self.choices
        return tuple(int(end) if self.scale in ("int", "int_log") else end for end in self.ends)

    @property
    def listed(self) -> tuple[JsonValue, ...] | None:
        """The values, if they are choices or steps of a range; else None."""
        if self.scale == "choice" or self.step is None:
            return self.choices
        low, high, step = (Decimal(str(value)) for value in (*self.ends, self.step))
        number = int if self.scale == "int" else float
        return tuple(number(low + count * step) for count in range(int((high - low) / step) + 1))

    def distribution(self) -> BaseDistribution:
        """The range as an Optuna distribution."""
        if self.scale == "choice":
            return CategoricalDistribution(self.extremes)  # type: ignore[arg-type]
        low, high = self.ends
        if self.scale in ("int", "int_log"):
            return IntDistribution(int(low), int(high), log=self.scale == "int_log", step=int(self.step or 1))
        return FloatDistribution(low, high, log=self.scale == "log", step=self.step)

    def holds(self, value: JsonValue) -> bool:
        """Whether a value is one that the search can try."""
        if self.scale == "choice":
            return self.choices is not None and value in self.choices
        is_number = isinstance(value, int if self.scale in ("int", "int_log") else int | float)
        if not is_number or isinstance(value, bool):
            return False
        low, high = self.ends
        return low <= float(str(value)) <= high and (self.listed is None or value in self.listed)

    def grid(self, points: int) -> list[JsonValue]:
        """Values at equal distances on the scale, both ends included; all choices or steps, no whole number twice."""
        if (listed := self.listed) is not None:
            return list(listed)
        return list(dict.fromkeys(self.at(number / max(1, points - 1)) for number in range(points)))

    def at(self, position: float) -> JsonValue:
        """The value at a position of the range, on its scale.

        Args:
            position: From 0 (lower end) to less than 1 (upper end).
        """
        if (listed := self.listed) is not None:
            return listed[int(position * len(listed))]
        low, high = self.ends
        if self.scale in ("int", "int_log"):
            low, high = low - 0.5, high + 0.5
        if self.scale in ("log", "int_log"):
            value = math.exp(math.log(low) + position * (math.log(high) - math.log(low)))
        else:
            value = low + position * (high - low)
        if self.scale in ("int", "int_log"):
            return min(max(round(value), int(self.ends[0])), int(self.ends[1]))
        return min(max(value, low), high)


def corners(space: Sequence[SearchParameter]) -> list[dict[str, JsonValue]]:
    """Return the fewest settings that together have every choice, and both ends of every range."""
    count = max((len(parameter.extremes) for parameter in space), default=0)
    return [{p.target: p.extremes[number % len(p.extremes)] for p in space} for number in range(count)]


def searched_ranges(space: Sequence[SearchParameter]) -> dict[str, SearchedRange]:
    """Return the ranges of a space by target, for the record of an experiment; choices have none."""
    return {
        parameter.target: SearchedRange(scale=parameter.scale, low=parameter.low, high=parameter.high)
        for parameter in space
        if parameter.low is not None and parameter.high is not None
    }


def within_budget(space: Sequence[SearchParameter], trials: int) -> tuple[tuple[SearchParameter, ...], int]:
    """Return what is tried of a space: all its values, if the trials are enough for them, or what a search proposes.

    Args:
        space: The hyperparameters of a method.
        trials: The largest number of trials.

    Returns:
        The space and the number of trials. A space of one exhaustive parameter needs one trial per value, if `trials`
        covers all values. In all other cases no parameter is exhaustive any more, and the number is `trials`.
    """
    if len(space) == 1 and space[0].exhaustive:
        low, high = space[0].ends
        values = int(high) - int(low) + 1
        if trials >= values:
            return tuple(space), values
    return tuple(parameter.model_copy(update={"exhaustive": False}) for parameter in space), trials
