"""The choice of an epoch by the validations of several folds (protocol `standard`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from results.records.records import Event, FoldResult
from results.spec.conditions import TrainingSettings


@dataclass(frozen=True)
class EpochChoice:
    """The chosen epoch.

    Attributes:
        epoch: Number of epochs to train; 0 if no fold was validated after its start.
        events: What happened in the folds' trainings.
    """

    epoch: int
    events: tuple[Event, ...] = ()


def choose_epoch(folds: Sequence[FoldResult], settings: TrainingSettings) -> EpochChoice:
    """Choose the trained epoch with the best mean validation MAP@R over the folds; of equal scores the earlier one.

    The number of epochs carries over to the training on all classes; the number of iterations does not.
    """
    # Folds that did not diverge. If all diverged, those that were validated after their start.
    counted = [fold for fold in folds if fold.status == "ok"] or [fold for fold in folds if len(fold.curve) > 1]
    common = min((len(fold.curve) for fold in counted), default=0)
    means = [fmean(fold.curve[number].map_at_r or 0.0 for fold in counted) for number in range(common)]
    # `max` returns the first of equal scores. Number 0 is the network before training, which is never chosen.
    best = max(range(1, common), key=means.__getitem__, default=0)
    events = [
        Event(kind="diverged", fold=fold.spec.fold, iteration=fold.iterations, choosing=True)
        for fold in folds
        if fold.status != "ok"
    ]
    if best and means[best] <= means[0]:
        events.append(Event(kind="no gain", fold=None, choosing=True))
    return EpochChoice(min(best * settings.validate_every, settings.max_epochs), tuple(events))
