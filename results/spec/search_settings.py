"""The hyperparameter search of an experiment: its budget, its sampler and its ranges."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator

from results.spec.mlrc_constants import TRIALS
from results.spec.range import Range
from results.values import AMOUNT, FREE, Record

MOST_TRIALS, MOST_SEARCHES = 10_000, 100
"""Largest budgets. A larger number is a slip of the keyboard, and its trainings could not even be listed."""

LOOKS = (3, 4, 5, 6, 8)
"""Numbers of searches after which a run until decided tests; the level of a look is its share of their sum."""


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
        equal_spaces: Whether every loss searches the images of a class in a batch (1, 2 or 4 with proxies, 2 or 4 for
            losses of pairs), and a loss around another what that one searches. Otherwise the cards have their numbers.
        probe_ends: Whether ends of ranges that most searches press are probed, and ranges widened where values beyond
            them are better (`results.spec.ends`). Then all searches get more trials. It takes 3 searches or more.
        searches: How often each method is searched, each time from other seeds. The reproductions are made for every
            search.
        racing: Whether a trial that is clearly behind the best trial on the same folds gets no more folds.
            MLRC trains every trial on all folds.
    """

    trials: int = Field(default=TRIALS, ge=0, le=MOST_TRIALS)
    bounds: Literal["widened", "initial"] = "widened"
    sampler: Annotated[SamplerSettings, FREE] = SamplerSettings()
    ranges: dict[str, dict[str, Range]] = Field(default={})
    published: str | None = None
    searches: Annotated[int, FREE, AMOUNT] = Field(default=1, ge=1, le=MOST_SEARCHES)
    racing: bool = False
    network_lr: Range | None = None
    equal_spaces: bool = Field(default=False, exclude_if=lambda value: not value)
    probe_ends: Annotated[bool, FREE] = Field(default=False, exclude_if=lambda value: not value)
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
    def _rates_are_a_range(self) -> "SearchSettings":
        if self.network_lr is not None:
            if self.network_lr.model_fields_set - {"low", "high"}:
                raise ValueError("network_lr takes low and high, on a log scale")
            self.rates()
        return self

    @model_validator(mode="after")
    def _looks_are_planned(self) -> "SearchSettings":
        if self.until_decided and self.probe_ends:
            raise ValueError("until_decided adds searches, and probe_ends adds trials to a fixed number; remove one")
        if self.until_decided and (self.searches not in LOOKS or self.trials == 0):
            looks = ", ".join(map(str, LOOKS))
            raise ValueError(
                f"until_decided looks after {looks} searches; give trials, and no other number of searches"
            )
        return self

    def rates(self) -> Range:
        """Return the range of the network's learning rate."""
        assert self.network_lr is not None
        return Range(scale="log", low=self.network_lr.low, high=self.network_lr.high).whole()
