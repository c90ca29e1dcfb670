"""Limits that the trainings and the searches of an experiment ran into: more epochs or wider ranges could help.

A training is cut off if it ended at the largest number of epochs while its validation score still rose. More epochs
could raise its score, so a comparison of such trainings is also one of the methods' speed of learning. A setting at an
end of the range that was searched could be better in a wider range. Where the two best trials of a search cannot be
told apart, another setting could win if they were trained again.

The score of a trial is one measurement. Its noise is the deviation between the validation scores of the reproductions,
which train the winning setting again. The difference of two trials then has the deviation noise x sqrt(2). The
runner-up lies within the noise if it is no further than this below the winner.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from results.records.records import RunRecord
from results.statistics.pair_tests import t_tail
from results.store.experiment_results import MeasuredExperiment


@dataclass(frozen=True)
class CutOff:
    """How many trainings of a method's runs were cut off."""

    method: str
    cut_off: int
    trainings: int


def cut_offs(measured: MeasuredExperiment) -> list[CutOff]:
    """Count the trainings that were cut off, by method, for the methods that have one.

    Runs of which neither the trainings nor their count were read are not counted.
    """
    counts = []
    for method in measured.summary.methods:
        runs = [(run, measured.cut_off_trainings(run)) for run in measured.records if run.method == method]
        trainings = sum(len(run.fold_fingerprints) for run, count in runs if count is not None)
        if cut_off := sum(count or 0 for _, count in runs):
            counts.append(CutOff(method, cut_off, trainings))
    return counts


@dataclass(frozen=True)
class RangeEnd:
    """A hyperparameter whose best value lies at an end of its range.

    Attributes:
        target: The hyperparameter, such as `optimizer.lr`.
        value: Value of that end.
        found: Number of searches that found it.
    """

    method: str
    target: str
    end: Literal["lowest", "highest"]
    value: float
    found: int
    searches: int

    @property
    def text(self) -> str:
        """Such as `loss.omega 1 (highest)`, or `loss.omega 1 (highest in 2 of 3 searches)`."""
        count = f" in {self.found} of {self.searches} searches" if self.searches > 1 else ""
        return f"{self.target} {self.value:g} ({self.end}{count})"


def range_ends(measured: MeasuredExperiment) -> list[RangeEnd]:
    """Find the hyperparameters whose best value lies at an end of the range that was searched."""
    ends = []
    for method in measured.summary.methods:
        settings = {run.search: run.hyperparameters for run in measured.records if run.method == method}
        for target, searched in measured.summary.ranges.get(method, {}).items():
            values = [setting.get(target) for setting in settings.values()]
            found = [searched.end_at(value) for value in values if isinstance(value, int | float)]
            ends += [
                RangeEnd(method, target, end, value, found.count(end), len(settings))
                for end, value in (("lowest", searched.low), ("highest", searched.high))
                if end in found
            ]
    return ends


@dataclass(frozen=True)
class RunnerUp:
    """The two best trials of a search.

    Attributes:
        search: Number of the search, from 0.
        best: Validation score of the best trial, a fraction of 1.
        noise: Standard deviation between the validation scores of the best setting's reproductions.
        runs: Number of these reproductions.
    """

    method: str
    search: int
    best: float
    second: float
    noise: float
    runs: int

    @property
    def within_noise(self) -> bool:
        """Whether the second-best trial is no further below the best than the noise of a difference."""
        return self.best - self.second <= math.sqrt(2) * self.noise

    @property
    def chance_of_another_order(self) -> float:
        """Estimated share of repetitions in which the second-best setting would score above the best.

        The difference of the two scores is taken for the true one. As the winner was chosen for its score, its true
        lead is smaller and the share is higher.
        """
        if self.noise == 0:
            return 0.5 if self.best == self.second else 0.0
        return t_tail((self.best - self.second) / (math.sqrt(2) * self.noise), self.runs - 1)


def runners_up(measured: MeasuredExperiment) -> list[RunnerUp]:
    """Compare the two best trials of each search whose setting has two reproductions with validation scores."""
    compared = []
    for method in measured.summary.methods:
        for search in sorted(number for key, number in measured.searches if key == method):
            scores = sorted(measured.searches[method, search].scores, reverse=True)
            runs = [run for run in measured.records if (run.method, run.search) == (method, search)]
            validated = validation_scores(measured, runs)
            if len(scores) > 1 and len(validated) > 1:
                noise = float(np.std(validated, ddof=1))
                compared.append(RunnerUp(method, search, scores[0], scores[1], noise, len(validated)))
    return compared


def validation_scores(measured: MeasuredExperiment, runs: Sequence[RunRecord]) -> list[float]:
    """Return the validation MAP@R, mean over folds, of the runs whose trainings are all known and have one."""
    means = []
    for run in runs:
        results = [measured.trainings[name][1] for name in run.fold_fingerprints if name in measured.trainings]
        scores = [result.best_map_at_r for result in results if result.best_map_at_r is not None]
        if scores and len(scores) == len(run.fold_fingerprints):
            means.append(float(np.mean(scores)))
    return means
