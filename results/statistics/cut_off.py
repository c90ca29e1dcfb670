"""Trainings that were cut off: they ended at the largest number of epochs while validation was still at its best.

Early stopping did not end such a training, so more epochs could raise its score. A comparison of such trainings is
also a comparison of the methods' speed of learning.
"""

from dataclasses import dataclass

from results.experiment_results import MeasuredExperiment
from results.records import FoldResult, RunRecord


@dataclass(frozen=True)
class CutOff:
    """How many trainings of a method's runs were cut off.

    Attributes:
        method: Key of the method.
        cut_off: Number of trainings that are known to be cut off.
        trainings: Number of trainings of the method's runs.
    """

    method: str
    cut_off: int
    trainings: int

    @property
    def all(self) -> bool:
        """Whether every training was cut off."""
        return self.cut_off == self.trainings


def cut_offs(measured: MeasuredExperiment) -> list[CutOff]:
    """Count the trainings that were cut off.

    Args:
        measured: The experiment. Without its trainings, only runs whose trainings were all cut off can be seen, from
            the iterations in their records.

    Returns:
        The counts of the methods with a cut-off training, in the order of the experiment.
    """
    counts = []
    for method in measured.summary.methods:
        records = [record for record in measured.records if record.method == method]
        cut_off = sum(_of_run(measured, record) for record in records)
        if cut_off:
            counts.append(CutOff(method, cut_off, sum(len(record.fold_fingerprints) for record in records)))
    return counts


def is_cut_off(result: FoldResult) -> bool:
    """Tell whether a training ended at the largest number of epochs and its last checkpoint is its model."""
    return result.stopped_by == "max_epochs" and result.best_iteration == result.iterations > 0


def _of_run(measured: MeasuredExperiment, record: RunRecord) -> int:
    names = record.fold_fingerprints
    if all(name in measured.trainings for name in names):
        return sum(is_cut_off(measured.trainings[name][1]) for name in names)
    # A training that patience ends has later iterations than its best. So no other ending has equal sums.
    longest = record.iterations if record.iterations is not None else _longest(measured, len(names))
    return len(names) if longest and record.steps == longest else 0


def _longest(measured: MeasuredExperiment, trainings: int) -> int | None:
    """Iterations of trainings that ran for all epochs; None if they depend on the number of images."""
    experiment = measured.summary.experiment
    if experiment is None or experiment.training.iterations_per_epoch is None:
        return None
    return trainings * experiment.training.max_epochs * experiment.training.iterations_per_epoch
