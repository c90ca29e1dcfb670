"""Limits that the trainings and the searches of an experiment ran into: more epochs or wider ranges could help.

A training is cut off if it ended at the largest number of epochs while validation was still at its best. Early stopping
did not end it, so more epochs could raise its score, and a comparison of such trainings is also one of the methods'
speed of learning. A setting at an end of the range that was searched could be better in a wider range.
"""

from dataclasses import dataclass
from typing import Literal

from results.records.records import RunRecord
from results.store.experiment_results import MeasuredExperiment


@dataclass(frozen=True)
class CutOff:
    """How many trainings of a method's runs were cut off.

    Attributes:
        cut_off: Number of trainings that are known to be cut off.
        counted: Whether each training was looked at. Otherwise more may be cut off.
    """

    method: str
    cut_off: int
    trainings: int
    counted: bool = True

    @property
    def all(self) -> bool:
        """Whether every training was cut off."""
        return self.cut_off == self.trainings


def cut_offs(measured: MeasuredExperiment) -> list[CutOff]:
    """Count the trainings that were cut off.

    Methods without a cut-off training are left out. Without trainings and their counts, only runs whose trainings were
    all cut off can be seen, from the iterations in their records.
    """
    counts = []
    for method in measured.summary.methods:
        records = [record for record in measured.records if record.method == method]
        counted = [measured.cut_off_trainings(record) for record in records]
        cut_off = sum(
            _seen(measured, record) if of_run is None else of_run
            for record, of_run in zip(records, counted, strict=True)
        )
        if cut_off:
            trainings = sum(len(record.fold_fingerprints) for record in records)
            counts.append(CutOff(method, cut_off, trainings, None not in counted or cut_off == trainings))
    return counts


def _seen(measured: MeasuredExperiment, record: RunRecord) -> int:
    """Cut-off trainings that the run's record shows: all or none."""
    names = record.fold_fingerprints
    # A training that patience ends has later iterations than its best. So no other ending has equal sums.
    longest = record.iterations
    if longest is None:
        training = measured.summary.experiment.for_row(record.method).training
        # An epoch without a number of iterations depends on the number of images, which nobody knows here.
        longest = len(names) * training.max_epochs * (training.iterations_per_epoch or 0)
    return len(names) if longest and record.steps == longest else 0


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
