"""The trials of a search."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from results.records.records import Fraction
from results.values import Record, canonical_json


class Trial(Record):
    """One hyperparameter setting of a search, which is trained on the folds.

    Attributes:
        number: Number of the trial in its search, from 0. Seeds derive from it.
        setting: The hyperparameters, by target.
        state: `running` until it has a score; `complete` with all folds; `raced` if it got no more folds because it was
            clearly behind; `failed`, without a score, if the method refused the setting.
        score: What the sampler is told: the mean of `fold_scores`, or for a raced trial the expected score; 0 if a fold
            diverged, as in MLRC's code (specification, 11.13).
        fold_scores: Best validation MAP@R of each trained fold in order, fractions of 1; 0 for a fold that diverged.
        reason: Why folds diverged, or why the trial failed; None otherwise.
    """

    number: int = Field(ge=0)
    setting: dict[str, JsonValue]
    state: Literal["running", "complete", "raced", "failed"] = "running"
    score: float | None = None
    fold_scores: tuple[Fraction, ...] = ()
    trainings: tuple[str, ...] = ()
    reason: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> "Trial":
        if (self.state in ("running", "failed")) != (self.score is None):
            raise ValueError("a trial has a score if its folds are finished, and only then")
        if self.state == "failed" and self.reason is None:
            raise ValueError("a failed trial has a reason")
        return self

    @property
    def diverged(self) -> bool:
        """Whether the training of a fold diverged."""
        return self.state != "failed" and self.reason is not None


def mean_of(scores: Sequence[float]) -> float:
    """Return the score of a trial with all folds."""
    return fmean(scores) if scores else 0.0


def repeated_settings(searches: Sequence[Sequence[Trial]]) -> tuple[int, int]:
    """Count the trials of later searches whose setting an earlier search tried, and all trials of later searches."""
    known, repeated = set[str](), 0
    for trials in searches:
        own = [canonical_json(trial.setting) for trial in trials]
        repeated += sum(setting in known for setting in own)
        known.update(own)
    return repeated, sum(map(len, searches[1:]))


def best_trial(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial with the highest score on all folds; of equal scores the earlier one (specification, 11.11)."""
    complete = (trial for trial in trials if trial.state == "complete")
    return max(complete, key=lambda trial: trial.score or 0.0, default=None)
