"""The search space: hyperparameters and their ranges, and a method with those that are searched."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import Field, JsonValue, model_validator

from results.spec.hyperparameters import method_at, values_at
from results.spec.recipe import Recipe
from results.spec.search_settings import Scale, SearchedRange, check_bounds
from results.spec.training_spec import MethodSpec
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


class MethodTemplate(Record):
    """A method at its defaults, with its search space.

    Attributes:
        method: The method with defaults for all hyperparameters.
        space: The hyperparameters to search, with their ranges; may be empty.
        given: Hyperparameters, by target, that the experiment sets or takes from a publication. `method` has them too.
        recipe: What the card decides about training and search; None in a template that no card made.
    """

    method: MethodSpec
    space: tuple[SearchParameter, ...] = ()
    given: dict[str, JsonValue] = Field(default={})
    recipe: Recipe | None = None

    def at(self, hyperparameters: Mapping[str, JsonValue]) -> MethodSpec:
        """Set hyperparameters of the method; see `results.spec.hyperparameters.method_at`."""
        return method_at(self.method, hyperparameters)

    def middle(self) -> dict[str, JsonValue]:
        """The setting in the middle of all ranges."""
        return {parameter.target: parameter.at(0.5) for parameter in self.space}

    def default_setting(self, network_lr: float) -> dict[str, JsonValue]:
        """The method's own values of what is searched, without those that are not set or outside their range.

        Args:
            network_lr: The network's learning rate where the method has none; parameters of a loss take it too.
        """
        lr = network_lr if self.method.lr is None else self.method.lr
        loss_lr = lr if self.method.loss_lr is None else self.method.loss_lr
        method = self.method.model_copy(update={"lr": lr, "loss_lr": loss_lr})
        own = zip(self.space, values_at(method, [parameter.target for parameter in self.space]), strict=True)
        return {parameter.target: value for parameter, value in own if parameter.holds(value)}
