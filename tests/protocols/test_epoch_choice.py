"""The epoch of a `standard` run is the best of the mean validation curve of its folds."""

import pytest

from protocols.standard import choose_epoch
from results.records.records import CurvePoint, Event, FoldResult
from results.spec.conditions import TrainingSettings
from tests.support.sample_records import some_spec
from tests.support.toys import made_up_result

SETTINGS = TrainingSettings(max_epochs=5, validate_every=2)
"""Validations after epochs 0, 2, 4 and 5."""
DIVERGED = Event(kind="diverged", fold=some_spec().fold, iteration=100, choosing=True)


def fold(*scores: float, reason: str | None = None) -> FoldResult:
    points = tuple(
        CurvePoint(iteration=10 * number, map_at_r=score, r_precision=score, precision_at_1=score, loss=1.0)
        for number, score in enumerate(scores)
    )
    return made_up_result(some_spec(), max(scores, default=0.0), reason=reason).model_copy(update={"curve": points})


def diverged(*scores: float) -> FoldResult:
    return fold(*scores, reason="loss not finite at iteration 7")


@pytest.mark.parametrize(
    ("folds", "epoch"),
    [
        ([fold(0.1, 0.2, 0.4, 0.3)], 4),
        ([fold(0.1, 0.2, 0.3, 0.4)], 5),
        ([fold(0.1, 0.9, 0.2, 0.3), fold(0.1, 0.1, 0.2, 0.95)], 5),
        ([fold(0.1, 0.3, 0.3, 0.3), fold(0.1, 0.3, 0.3, 0.3)], 2),
        ([fold(0.9, 0.2, 0.3, 0.1)], 4),
    ],
    ids=["one fold", "the last epoch", "the mean decides", "the earlier of equal ones", "never the untrained network"],
)
def test_the_best_epoch_of_the_mean_is_chosen(folds: list[FoldResult], epoch: int) -> None:
    assert choose_epoch(folds, SETTINGS)[0] == epoch


def test_only_epochs_that_every_fold_reached_are_candidates() -> None:
    # The hard fold stopped after epoch 4. Alone, the easy fold has its best mean after epoch 5.
    easy, hard = fold(0.5, 0.6, 0.7, 0.8), fold(0.1, 0.3, 0.1)
    assert choose_epoch([easy, hard], SETTINGS)[0] == 2
    assert choose_epoch([easy], SETTINGS)[0] == 5


@pytest.mark.parametrize(
    ("folds", "epoch", "events"),
    [
        ([fold(0.1, 0.2, 0.4, 0.3), diverged(0.1, 0.9), fold(0.1, 0.2, 0.4, 0.3)], 4, [DIVERGED]),
        ([diverged(0.1, 0.3, 0.2), diverged(0.1, 0.2, 0.4)], 4, [DIVERGED] * 2),
        ([diverged(0.1, 0.3, 0.2), diverged(0.1, 0.2)], 2, [DIVERGED] * 2),
        ([diverged(0.1, 0.2, 0.3), diverged(0.1)], 4, [DIVERGED] * 2),
        ([diverged(0.1), diverged()], 0, [DIVERGED] * 2),
        ([fold(0.4, 0.2, 0.3, 0.3), fold(0.2, 0.3, 0.2, 0.2)], 2, [Event(kind="no gain", fold=None, choosing=True)]),
    ],
    ids=["left out", "both reached epoch 4", "one reached epoch 2", "one at once", "no epoch", "no gain in the mean"],
)
def test_what_happened_is_said_and_if_all_diverged_their_validations_before_that_count(folds, epoch, events) -> None:
    assert choose_epoch(folds, SETTINGS) == (epoch, tuple(events))
