"""The hyperparameter search of an experiment: its budget, its sampler and its ranges."""

import math
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, JsonValue, model_validator

from results.spec.mlrc_constants import TRIALS
from results.values import AMOUNT, FREE, Record

MOST_TRIALS, MOST_SEARCHES = 10_000, 100
"""Largest budgets. A larger number is a slip of the keyboard, and its trainings could not even be listed."""

MOST_VALUES = 1000
"""Values of a range with a step, at most: a grid lists them all."""

LOOKS = (3, 4, 5, 6, 8)
"""Numbers of searches after which a run until decided tests; the level of a look is its share of their sum."""

Scale = Literal["linear", "log", "int", "int_log", "choice"]

_AT_AN_END = 0.01
"""Part of a range that counts as its end, on its scale. Samplers propose the ends themselves up to rounding."""


class SearchedRange(Record):
    """The range in which an experiment searched one hyperparameter, with both ends.

    Attributes:
        scale: The scale, not `choice`.
    """

    scale: Scale
    low: float
    high: float

    def end_at(self, value: float) -> Literal["lowest", "highest"] | None:
        """Tell at which end of the range a value lies; None if it lies between them."""
        if self.scale in ("int", "int_log"):
            return "lowest" if value <= self.low else "highest" if value >= self.high else None
        low, high, place = (math.log(v) if self.scale == "log" else v for v in (self.low, self.high, value))
        margin = _AT_AN_END * (high - low)
        return "lowest" if place <= low + margin else "highest" if place >= high - margin else None


def check_bounds(scale: Scale, low: float, high: float, step: float | None = None) -> None:
    """Refuse bounds, or a step between them, that a scale cannot have."""
    if "log" in scale and low <= 0:
        raise ValueError("a log scale needs low > 0")
    if scale in ("int", "int_log") and not all(float(value).is_integer() for value in (low, high, step or 1)):
        raise ValueError(f"scale {scale} needs whole numbers as low, high and step")
    if step is not None:
        if "log" in scale:
            raise ValueError("a log scale has no step; use scale linear or int, or choices")
        steps = (Decimal(str(high)) - Decimal(str(low))) / Decimal(str(step))
        if steps % 1 or not 0 < steps < MOST_VALUES:
            raise ValueError(f"high must be low and 1 to {MOST_VALUES - 1} whole steps of {step:g}")


def _is_none(value: object) -> bool:
    return value is None


class Bounds(Record):
    """A search range on a scale that stands elsewhere."""

    low: FiniteFloat
    high: FiniteFloat

    @model_validator(mode="after")
    def _ordered(self) -> "Bounds":
        if self.low >= self.high:
            raise ValueError("needs low < high")
        return self


class ChangedRange(Record):
    """What an experiment changes about the search of a hyperparameter. What it leaves out is as in the method's card.

    Attributes:
        low: Lowest value.
        high: Highest value.
        scale: The scale; `choice` if there are choices.
        step: Distance of the values from `low` on, for the scales `linear` and `int`.
        choices: The values, in place of a range.
    """

    low: FiniteFloat | None = Field(default=None, exclude_if=_is_none)
    high: FiniteFloat | None = Field(default=None, exclude_if=_is_none)
    scale: Scale | None = Field(default=None, exclude_if=_is_none)
    step: FiniteFloat | None = Field(default=None, gt=0, exclude_if=_is_none)
    choices: tuple[JsonValue, ...] | None = Field(default=None, min_length=1, exclude_if=_is_none)


class SamplerSettings(Record):
    """The search's sampler. All arguments of the default are explicit, since defaults of Optuna change with releases.

    Attributes:
        name: Class of `optuna.samplers`. MLRC's is a Gaussian process.
        startup_trials: Number of trials before the sampler uses the results of earlier trials.
        startup: How the startup trials are drawn.
        deterministic_objective: Whether the Gaussian process assumes an objective without noise.
    """

    name: str = "GPSampler"
    arguments: dict[str, JsonValue] = Field(default={})
    startup_trials: int = Field(default=5, ge=0)
    startup: Literal["scrambled_sobol"] = "scrambled_sobol"
    deterministic_objective: bool = False


class SearchSettings(Record):
    """The hyperparameter search.

    Attributes:
        trials: Number of settings tried per method; 0 takes the published values of each method.
        bounds: MLRC's search ranges: `initial` at the start of its search, `widened` at the end.
        ranges: Search ranges of this experiment, by method and hyperparameter.
        published: Name of the published values that are used where nothing is searched; None takes those for the
            dataset. MLRC published other values for batches of 256.
        enqueue: Settings by target, such as `{loss.margin: 0.1}`, that every search of a method with these
            hyperparameters tries first; what a setting leaves out is proposed as ever.
        until_decided: Whether searches are added at the planned `LOOKS` until every comparison has an answer. Then
            `searches` is the look that was reached, and the plan is part of the experiment's identity.
        default: Whether each searched method gets a further row with its card's own settings, to show what tuning buys.
            Its searches try these settings first, as far as they are in the ranges.
        network_lr: Range in which the learning rate of trunk and embedder is searched for every method, on a log scale;
            None takes that of the training settings.
        searches: How often each method is searched, each time from other seeds. The reproductions are made for every
            search.
        racing: Whether a trial that is clearly behind the best trial on the same folds gets no more folds.
            MLRC trains every trial on all folds.
    """

    trials: int = Field(default=TRIALS, ge=0, le=MOST_TRIALS)
    bounds: Literal["widened", "initial"] = "widened"
    sampler: Annotated[SamplerSettings, FREE] = SamplerSettings()
    ranges: dict[str, dict[str, ChangedRange]] = Field(default={})
    published: str | None = None
    searches: Annotated[int, FREE, AMOUNT] = Field(default=1, ge=1, le=MOST_SEARCHES)
    racing: bool = False
    network_lr: Bounds | None = None
    enqueue: tuple[dict[str, JsonValue], ...] = Field(default=(), exclude_if=lambda value: not value)
    default: bool = Field(default=False, exclude_if=lambda value: not value)
    until_decided: Annotated[bool, FREE, AMOUNT] = Field(default=False, exclude_if=lambda value: not value)

    @model_validator(mode="before")
    @classmethod
    def _begins_at_the_first_look(cls, values: Any) -> Any:
        # One search is what files have that do not say how many.
        if isinstance(values, dict) and values.get("until_decided") is True and values.get("searches", 1) == 1:
            return {**values, "searches": LOOKS[0]}
        return values

    @model_validator(mode="after")
    def _looks_are_planned(self) -> "SearchSettings":
        if self.until_decided and (self.searches not in LOOKS or self.trials == 0):
            looks = ", ".join(map(str, LOOKS))
            raise ValueError(
                f"until_decided looks after {looks} searches; give trials, and no other number of searches"
            )
        return self
