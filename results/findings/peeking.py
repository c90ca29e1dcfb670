"""The gain from peeking: how much test scores rise if the checkpoint is chosen by test scores.

The released code of some papers keeps the epoch with the best test score (specification, section 10). The honest score
is the test score at the checkpoint that validation chose. The peeked score is the best test score of the same training.
"""

from dataclasses import dataclass, replace

import numpy as np

from results.answer.answers import Answer
from results.answer.intervals import Interval
from results.answer.typical import intervals_of, method_values
from results.records.records import RunRecord, Scores
from results.store.experiment_results import MeasuredExperiment


@dataclass(frozen=True)
class Peeking:
    """A method's gain from peeking.

    The scores are those of the separated embeddings, as means over folds and fractions of 1, with intervals over runs.

    Attributes:
        honest: Test score at the checkpoints that validation chose.
        peeked: Best test score along the same trainings.
        gain: `peeked` minus `honest`, run by run.
        n: Number of runs that were used.
        left_out: Number of runs without test scores along their trainings.
        cut_off: Whether all trainings of the used runs were cut off (`cut_off`).
    """

    method: str
    honest: Interval
    peeked: Interval
    gain: Interval
    n: int
    left_out: int
    cut_off: bool = False

    @property
    def nothing_to_choose(self) -> bool:
        """Whether the gain is zero because the scores rose until all trainings were cut off."""
        return self.cut_off and self.gain.mean == 0


def peeking(found: Answer, measured: MeasuredExperiment, metric: str = "map_at_r") -> list[Peeking]:
    """Compute the gain from peeking for each method.

    A run is used if all of its trainings have test scores along the training and at the chosen checkpoint. Methods
    without a usable run are left out. The headline metric chooses the checkpoint and is the score.
    """
    if metric not in Scores.model_fields:
        raise ValueError(f"test curves hold {', '.join(Scores.model_fields)}, not {metric}")
    question = replace(found.question, step=0.0)
    scores: tuple[dict[str, dict[int, list[float]]], ...] = ({}, {}, {})  # Honest, peeked, gain.
    used: dict[str, list[RunRecord]] = {}
    for record in measured.records:
        folds = [_fold(measured, fingerprint, metric) for fingerprint in record.fold_fingerprints]
        usable = [fold for fold in folds if fold is not None]
        if len(usable) == len(folds):
            honest, best = np.mean(usable, axis=0).tolist()
            for values, value in zip(scores, (honest, best, best - honest), strict=True):
                values.setdefault(record.method, {}).setdefault(record.search, []).append(value)
            used.setdefault(record.method, []).append(record)
    honest, peeked, gain = (intervals_of(question, own, method_values(question, own)) for own in scores)
    rows = []
    for method, runs in used.items():
        cut_off = all(measured.cut_off_trainings(run) == len(run.specs) for run in runs)
        left_out = len(measured.runs[method]) - len(runs)
        rows.append(Peeking(method, honest[method], peeked[method], gain[method], len(runs), left_out, cut_off))
    return rows


def _fold(measured: MeasuredExperiment, fingerprint: str, metric: str) -> tuple[float, float] | None:
    """The test score at the checkpoint that validation chose, and the best test score; None if one is missing."""
    if fingerprint not in measured.trainings or fingerprint not in measured.test_curves:
        return None
    result, points = measured.trainings[fingerprint], measured.test_curves[fingerprint].points
    scores = {point.iteration: float(getattr(point.scores, metric)) for point in points}
    # The untrained network can be chosen only if validation chose it too.
    trained = [score for iteration, score in scores.items() if iteration > 0 or result.best_iteration == 0]
    if result.best_iteration not in scores or not trained:
        return None
    return scores[result.best_iteration], max(trained)
