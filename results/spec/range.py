"""The range of a hyperparameter: read from a card, changed by an experiment, checked, and drawn from by a search."""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal, Self

from pydantic import Field, FiniteFloat, JsonValue, model_validator

from results.values import Record

Scale = Literal["linear", "log", "int", "int_log", "choice"]

BATCH_SIZE = "$batch_size"
"""An end of a range that is the batch size of the experiment."""

MOST_VALUES = 1000
"""Values of a range with a step, at most: a grid lists them all."""

End = Literal["low", "high"]

PRESSED, BEYOND, WIDER = 0.05, 0.25, 0.5
"""Parts of a range: what counts as its end where searches press it, how far a probe goes beyond it, and how much wider
a range gets."""

_LOG = ("log", "int_log")


def _number(end: float | str | None, batch_size: int | None) -> float | None:
    return (None if batch_size is None else float(batch_size)) if isinstance(end, str) else end


def _is_none(value: object) -> bool:
    return value is None


class Range(Record):
    """The range of one hyperparameter. A part of one says what an experiment changes about that of a card.

    Attributes:
        scale: `linear` or `log` for numbers, `int` or `int_log` for whole numbers, `choice` for a list of values.
        low: Lower end, included; `$batch_size` is the batch size of the experiment. Not for `choice`.
        high: Upper end, likewise.
        step: Distance of the values from `low` on, for `linear` and `int`; None allows all values between the ends.
        choices: The values of a `choice`.
        exhaustive: Whether every whole number is tried once if the budget allows it (specification, 11.14).
        least: The smallest value that makes a difference: the method refuses lower ones, or is the same there. An end
            that is not beyond it is no end that a search could have been held up by. None is no such value.
        most: The largest one, likewise.
    """

    scale: Scale | None = Field(default=None, exclude_if=_is_none)
    low: FiniteFloat | Literal["$batch_size"] | None = Field(default=None, exclude_if=_is_none)
    high: FiniteFloat | Literal["$batch_size"] | None = Field(default=None, exclude_if=_is_none)
    step: FiniteFloat | None = Field(default=None, gt=0, exclude_if=_is_none)
    choices: tuple[JsonValue, ...] | None = Field(default=None, min_length=1, exclude_if=_is_none)
    exhaustive: bool = Field(default=False, exclude_if=lambda value: not value)
    least: FiniteFloat | None = Field(default=None, exclude_if=_is_none)
    most: FiniteFloat | None = Field(default=None, exclude_if=_is_none)

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        numbers = (self.low, self.high, self.step) != (None, None, None)
        if numbers and (self.choices or self.scale == "choice"):
            raise ValueError("needs either choices or a scale of numbers with low and high")
        if self.exhaustive and self.scale not in (None, "int"):
            raise ValueError("exhaustive needs scale int")
        if self.scale is not None and self.low is not None and self.high is not None:
            self.check_ends()
        choices = self.choices or ()
        if twice := [choice for place, choice in enumerate(choices) if choice in choices[:place]]:
            raise ValueError(f"the choice {twice[0]!r} equals one before it; name each once")
        return self

    def whole(self, batch_size: int | None = None) -> Self:
        """Return the range with the batch size in place of its name.

        Raises:
            ValueError: Something is missing, or the scale cannot have such ends or such a step.
        """
        low, high = (_number(end, batch_size) for end in (self.low, self.high))
        # A batch is no part of a range that somebody could have made wider.
        least, most = low if self.low == BATCH_SIZE else self.least, high if self.high == BATCH_SIZE else self.most
        found = self.model_copy(update={"low": low, "high": high, "least": least, "most": most})
        if (found.scale == "choice") != bool(found.choices):
            raise ValueError("needs either choices or a scale of numbers with low and high")
        if found.choices:
            return found
        if low is None or high is None or low >= high:
            with_batch = "with this batch size " if BATCH_SIZE in (self.low, self.high) else ""
            shown = " to ".join("nothing" if end is None else f"{end:g}" for end in (low, high))
            raise ValueError(f"{with_batch}the range is {shown}; give low < high")
        found.check_ends()
        return found

    def check_ends(self) -> None:
        """Refuse ends, or a step between them, that the scale cannot have. A batch size is a whole number, as 1 is."""
        scale = self.scale or "linear"
        low, high = (1.0 if isinstance(end, str) else end for end in (self.low, self.high))
        assert low is not None
        assert high is not None
        if "log" in scale and low <= 0:
            raise ValueError("a log scale needs low > 0")
        if "int" in scale and not all(float(value).is_integer() for value in (low, high, self.step or 1)):
            raise ValueError(f"scale {scale} needs whole numbers as low, high and step")
        if self.step is not None:
            if "log" in scale:
                raise ValueError("a log scale has no step; use scale linear or int, or choices")
            steps = (Decimal(str(high)) - Decimal(str(low))) / Decimal(str(self.step))
            if steps % 1 or not 0 < steps < MOST_VALUES:
                raise ValueError(f"high must be low and 1 to {MOST_VALUES - 1} whole steps of {self.step:g}")

    def changed(self, by: "Range") -> "Range":
        """Return the range with what an experiment changes about it. Choices take the place of numbers, and back."""
        values: dict[str, Any] = {"scale": "choice"} if by.choices else self.model_dump(include=set(Range.model_fields))
        if by.scale is not None:
            values.pop("choices", None)
        values |= by.model_dump()
        kept = self.exhaustive and values["scale"] == "int" and by.step is None
        return Range.model_validate({**values, "exhaustive": by.exhaustive or kept})

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end of a whole range of numbers."""
        assert isinstance(self.low, float)
        assert isinstance(self.high, float)
        return self.low, self.high

    @property
    def is_whole_numbers(self) -> bool:
        """Whether the values are whole numbers."""
        return self.scale in ("int", "int_log")

    @property
    def extremes(self) -> tuple[JsonValue, ...]:
        """Both ends of a range; all choices."""
        if self.choices:
            return self.choices
        return tuple(int(end) if self.is_whole_numbers else end for end in self.ends)

    @property
    def listed(self) -> tuple[JsonValue, ...] | None:
        """The values, if they are choices or steps of a range; else None."""
        if self.choices or self.step is None:
            return self.choices
        low, high, step = (Decimal(str(value)) for value in (*self.ends, self.step))
        number = int if self.scale == "int" else float
        return tuple(number(low + count * step) for count in range(int((high - low) / step) + 1))

    def holds(self, value: JsonValue) -> bool:
        """Whether a value is one that the search can try."""
        if self.choices:
            return value in self.choices
        is_number = isinstance(value, int if self.is_whole_numbers else int | float)
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
        if self.is_whole_numbers:
            low, high = low - 0.5, high + 0.5
        if self.scale in ("log", "int_log"):
            value = math.exp(math.log(low) + position * (math.log(high) - math.log(low)))
        else:
            value = low + position * (high - low)
        if self.is_whole_numbers:
            return min(max(round(value), int(self.ends[0])), int(self.ends[1]))
        return min(max(value, low), high)

    def place(self, value: float) -> float:
        """The place of a number in a range of numbers, on its scale: 0 at its low end, 1 at its high end."""
        low, high, at = (math.log(one) if self.scale in _LOG else one for one in (*self.ends, value))
        return (at - low) / (high - low)

    def presses(self, value: float) -> End | None:
        """Tell at which end a value lies, within the outer `PRESSED` part; whole numbers lie at the end itself."""
        if self.is_whole_numbers:
            return "low" if value <= self.ends[0] else "high" if value >= self.ends[1] else None
        place = self.place(value)
        return "low" if place <= PRESSED else "high" if place >= 1 - PRESSED else None

    def is_open(self, end: End) -> bool:
        """Whether something else than the range ends there: values beyond the end are possible, and differ."""
        low, high = self.ends
        return self.least is None or low > self.least if end == "low" else self.most is None or high < self.most

    def beyond(self, end: End) -> float | int:
        """The value a quarter of the width beyond an open end, or half way to a limit that is nearer."""
        return self._outside(end, BEYOND, to_limit=0.5)

    def widened(self, end: End) -> Self:
        """Return the range with half of its width more at an open end, on its scale, but no farther than a limit."""
        return self.model_copy(update={end: float(self._outside(end, WIDER, to_limit=1.0))})

    def _outside(self, end: End, part: float, to_limit: float) -> float | int:
        low, high = (math.log(one) if self.scale in _LOG else one for one in self.ends)
        limit = self.least if end == "low" else self.most
        if limit is not None and limit <= 0 and self.scale in _LOG:
            limit = None
        start, away = (low, -1) if end == "low" else (high, 1)
        distance = part * (high - low)
        if limit is not None:
            to_it = abs((math.log(limit) if self.scale in _LOG else limit) - start)
            distance = min(distance, to_limit * to_it)
        value = start + away * distance
        value = math.exp(value) if self.scale in _LOG else value
        if self.step is not None or self.is_whole_numbers:  # Outwards, so that the value is another one.
            step, first = self.step or 1.0, self.ends[0]
            value = first + step * (math.floor if end == "low" else math.ceil)(round((value - first) / step, 9))
            if limit is not None:
                value = max(value, limit) if end == "low" else min(value, limit)
        return int(value) if self.is_whole_numbers else float(f"{value:.8g}")


def identity_of_space(space: Mapping[str, Range]) -> list[dict[str, JsonValue]]:
    """Return what names the ranges of a search, by target, in the form of stored studies."""
    identity: list[dict[str, JsonValue]] = []
    for target, one in space.items():
        step: dict[str, JsonValue] = {} if one.step is None else {"step": one.step}
        choices = None if one.choices is None else list(one.choices)
        ends: dict[str, JsonValue] = {"low": one.low, "high": one.high}
        whole: dict[str, JsonValue] = {"target": target, "scale": one.scale, **ends, **step}
        identity.append({**whole, "choices": choices, "exhaustive": one.exhaustive})
    return identity


def space_of(identity: Iterable[Mapping[str, Any]]) -> dict[str, Range]:
    """Return the ranges of a stored study, by target."""
    return {
        one["target"]: Range.model_validate({key: value for key, value in one.items() if key != "target"})
        for one in identity
    }


def middle_of(space: Mapping[str, Range]) -> dict[str, JsonValue]:
    """Return the setting in the middle of all ranges."""
    return {target: one.at(0.5) for target, one in space.items()}


def corners(space: Mapping[str, Range]) -> list[dict[str, JsonValue]]:
    """Return the fewest settings that together have every choice, and both ends of every range."""
    extremes = {target: one.extremes for target, one in space.items()}
    count = max(map(len, extremes.values()), default=0)
    return [{target: values[number % len(values)] for target, values in extremes.items()} for number in range(count)]


def within_budget(space: Mapping[str, Range], trials: int) -> tuple[dict[str, Range], int]:
    """Return what is tried of a space: all its values, if the trials are enough for them, or what a search proposes.

    Args:
        space: The hyperparameters of a method.
        trials: The largest number of trials.

    Returns:
        The space and the number of trials. A space of one exhaustive range needs one trial per value, if `trials`
        covers all values. In all other cases no range is exhaustive any more, and the number is `trials`, or 0 if there
        is nothing to search.
    """
    if len(space) == 1 and (only := next(iter(space.values()))).exhaustive:
        low, high = only.ends
        values = int(high) - int(low) + 1
        if trials >= values:
            return dict(space), values
    searched = {target: one.model_copy(update={"exhaustive": False}) for target, one in space.items()}
    return searched, trials if space else 0
