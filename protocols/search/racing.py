"""Racing: a trial of a search that is clearly behind the best trial on the same folds gets no more of them.

The folds of a trial count in order. After each, the trial is compared with the best trial that was trained on all
folds. Some folds are harder than others, so only the differences on the same folds count. Let d be their mean over k of
K folds, and s the deviation of a fold's score after the effects of trial and fold are taken out, estimated from all
complete trials. If the folds' differences vary normally, d misses the mean over all K folds by a deviation of
s sqrt(2 (1/k - 1/K)). The trial is clearly behind if d is below the quantile of Student's t at `LEVEL`, times this.

Early in a search there are few complete trials. So the estimate of s starts from `ASSUMED_DEVIATION` of the best score,
with the weight of `ASSUMED_DEGREES` degrees of freedom.

A decision depends on the trials before and on the trial's folds in order, never on time. `docs/comparisons.md` has what
the rule saves and how often it changes the winner.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from results.answer.intervals import t_quantile
from results.records.trials import Trial

RACING_VERSION = 1
"""Version of the rule. Raise it with every change of a decision or of an expected score; it is part of a raced study's
identity, so that such a study is not continued by another rule."""

LEVEL = 0.05
"""Probability that a trial as good as the best is called clearly behind after a fold, if the model holds."""

ASSUMED_DEVIATION = 0.1
"""Deviation of a fold's score that is assumed before any is known, as a fraction of the best trial's score."""

ASSUMED_DEGREES = 3
"""Weight of the assumed deviation in degrees of freedom: that of one further trial on four folds."""


@dataclass(frozen=True)
class Race:
    """The trials that a new trial is compared with.

    `complete` has the scores of the earlier trials that were trained on all folds, by trial and fold, in order.
    """

    complete: tuple[tuple[float, ...], ...]

    @classmethod
    def against(cls, trials: Iterable[Trial]) -> "Race":
        """Return the race against all trials so far that were trained on all folds to the end."""
        return cls(tuple(trial.fold_scores for trial in trials if trial.state == "complete" and not trial.diverged))

    @cached_property
    def best(self) -> tuple[float, ...]:
        """Fold scores of the complete trial with the highest mean; of equal means that of the earlier trial."""
        return max(self.complete, key=np.mean)

    def is_behind(self, scores: Sequence[float]) -> bool:
        """Return whether a trial gets no more folds; False if it has all of them or no trial is complete yet."""
        if not self.complete or len(scores) >= len(self.best):
            return False
        deviation, degrees = self._noise
        missing = 1 / len(scores) - 1 / len(self.best)
        bound = t_quantile(LEVEL, degrees) * deviation * np.sqrt(2 * missing)
        return bool(self._lead(scores) < bound)

    def expected(self, scores: Sequence[float]) -> float:
        """Return the expected score of a trial over all folds, from its scores on the first folds.

        It is the best trial's score plus the trial's mean difference on the same folds. The plain mean of the trial's
        folds would favour trials that stopped after an easy fold. For a trial that is behind it is always below the
        best trial's score. It is at least 0.
        """
        return max(0.0, float(np.mean(self.best)) + self._lead(scores))

    def _lead(self, scores: Sequence[float]) -> float:
        return float(np.mean(np.asarray(scores) - np.asarray(self.best[: len(scores)])))

    @cached_property
    def _noise(self) -> tuple[float, int]:
        """Deviation of a fold's score without the effects of trial and fold, and its degrees of freedom."""
        values = np.array(self.complete)
        residuals = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
        degrees = ASSUMED_DEGREES + (values.shape[0] - 1) * (values.shape[1] - 1)
        squares = ASSUMED_DEGREES * (ASSUMED_DEVIATION * np.mean(self.best)) ** 2 + (residuals**2).sum()
        return float(np.sqrt(squares / degrees)), degrees
