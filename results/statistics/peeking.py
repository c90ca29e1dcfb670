"""What choosing the checkpoint by test scores would have been worth: the same trainings, judged honestly and not.

Released code of some papers keeps the epoch of the best test score (specification, section 10). Honest is the test
score at the iteration that validation chose, or that was settled before; peeked is the best score along the training.
"""

from dataclasses import dataclass

import numpy as np

from results.experiment_results import MeasuredExperiment
from results.records import Scores
from results.statistics.intervals import Interval, student_t_interval
from results.statistics.selection import OracleSelection, ValidationSelection


@dataclass(frozen=True)
class Peeking:
    """A method's gain from peeking, over the same runs.

    honest, peeked, gain: of the separated embeddings, means over folds, with intervals over runs, fractions of 1.
    left_out: runs that were not tested all along their trainings.
    """

    method: str
    honest: Interval
    peeked: Interval
    gain: Interval
    left_out: int

    @property
    def n(self) -> int:
        """Runs that count."""
        return self.gain.n


def peeking(measured: MeasuredExperiment, metric: str = "map_at_r") -> list[Peeking]:
    """Gains by method, in the order in which methods first come; methods without a run that counts are left out.

    measured: with trainings and test curves. metric: one of MLRC's three, for choosing and for scoring. A run counts
    if every training of it was tested along its way and at the chosen iteration.
    """
    if metric not in Scores.model_fields:
        raise ValueError(f"test curves hold {', '.join(Scores.model_fields)}, not {metric}")
    by_method: dict[str, list[tuple[float, float] | None]] = {}
    for record in measured.records:
        folds = [_fold(measured, name, metric) for name in record.fold_fingerprints]
        counted = [fold for fold in folds if fold is not None]
        means = _fold_mean(counted) if len(counted) == len(folds) else None
        by_method.setdefault(record.method, []).append(means)
    return [_of_method(method, runs) for method, runs in by_method.items() if any(runs)]


def _of_method(method: str, runs: list[tuple[float, float] | None]) -> Peeking:
    counted = [run for run in runs if run is not None]
    honest, peeked = [run[0] for run in counted], [run[1] for run in counted]
    gains = [best - chosen for chosen, best in counted]
    return Peeking(
        method=method,
        honest=student_t_interval(honest),
        peeked=student_t_interval(peeked),
        gain=student_t_interval(gains),
        left_out=len(runs) - len(counted),
    )


def _fold_mean(folds: list[tuple[float, float]]) -> tuple[float, float]:
    return float(np.mean([honest for honest, _ in folds])), float(np.mean([best for _, best in folds]))


def _fold(measured: MeasuredExperiment, name: str, metric: str) -> tuple[float, float] | None:
    """Honest and peeked test score of one training, or None if they were not recorded."""
    if name not in measured.trainings or name not in measured.test_curves:
        return None
    (_, result), curve = measured.trainings[name], measured.test_curves[name]
    honest = ValidationSelection().choose(result, curve)
    peeked = OracleSelection(metric).choose(result, curve)
    if honest is None or peeked is None:
        return None
    return float(getattr(honest.scores, metric)), float(getattr(peeked.scores, metric))
