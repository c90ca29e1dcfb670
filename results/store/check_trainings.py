"""What the record of a training, or a score, says twice: the one is computed again from the other."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from results.records.records import CurvePoint, FoldResult, Scores, TestCurve
from results.spec.training_spec import FoldSpec

SLACK = 1e-9
"""Rounding of sums in another order."""


def score_faults(scores: Scores | CurvePoint, slack: float = SLACK) -> Iterator[str]:
    """Yield what cannot be of three scores: they are fractions of 1, and MAP@R is at most R-precision."""
    for name in ("precision_at_1", "r_precision", "map_at_r"):
        value = getattr(scores, name)
        if not -slack <= value <= 1 + slack:
            yield f"{name} {value:g} is no fraction of 1"
    if scores.map_at_r is not None and scores.r_precision is not None and scores.map_at_r > scores.r_precision + slack:
        yield f"MAP@R {scores.map_at_r:g} is above R-precision {scores.r_precision:g}"


def training_faults(spec: FoldSpec, result: FoldResult) -> Iterator[str]:
    """Yield how a result contradicts its specification or itself. Everything that follows from its curve is computed.

    Args:
        spec: The training.
        result: Its result, with the same fingerprint.
    """
    failed = result.status == "nan"
    if failed != (result.stopped_by == "nan") or failed != (result.reason is not None):
        yield "status, reason and stopped_by do not fit together"
        return
    if not 0 <= result.wall_time < math.inf:
        yield f"wall_time {result.wall_time:g} is no duration"
    if wrong := next(_curve_faults(spec, result), None):
        yield wrong
        return
    for name, value in _from_curve(spec, result).items():
        if getattr(result, name) != value:
            yield f"{name} is {getattr(result, name)}, and {value} by its curve"


def _curve_faults(spec: FoldSpec, result: FoldResult) -> Iterator[str]:
    """Yield what is wrong with the validations themselves: their number, their iterations and their scores."""
    curve, settings, failed = result.curve, spec.training, result.status == "nan"
    if not curve and not failed:
        yield "it has no validation"
    epochs = _epochs(spec, len(curve))
    if (spec.method.loss is None and len(curve) > 1) or len(set(epochs)) < len(epochs):
        yield f"it has {len(curve)} validations, more than its epochs"
    steps = _steps_per_epoch(spec, curve)
    if [point.iteration for point in curve] != [epoch * steps for epoch in epochs]:
        yield "the iterations of its validations are not those of its epochs"
    if failed:
        end = settings.max_epochs * steps if steps else math.inf
        if not (curve[-1].iteration if curve else 0) <= result.iterations <= end:
            yield f"iterations is {result.iterations}, which its epochs do not have"
        if not str(result.reason).endswith(f"at iteration {result.iterations}"):
            yield "its reason names another iteration"
    fixed = spec.checkpoint_epoch is not None
    for point in curve:
        first, r_precision, map_at_r = point.precision_at_1, point.r_precision, point.map_at_r
        if fixed or first is None or r_precision is None or map_at_r is None:
            if not fixed or not first is r_precision is map_at_r is None:
                yield "it has validation scores without validation classes, or lacks them"
        # Stores have millions of points, and nearly all are as they should be.
        elif not (0 <= map_at_r <= r_precision <= 1 and 0 <= first <= 1):
            yield from score_faults(point)
        if point.loss is not None and (point.iteration == 0 or not math.isfinite(point.loss)):
            yield f"the loss at iteration {point.iteration} cannot be one"


def _epochs(spec: FoldSpec, points: int) -> list[int]:
    """The epochs of the first validations; the last epoch has one always."""
    return [min(number * spec.training.validate_every, spec.training.max_epochs) for number in range(points)]


def _steps_per_epoch(spec: FoldSpec, curve: Sequence[CurvePoint]) -> int:
    """Iterations of an epoch. A pass over the training images has a length that only the curve tells; 0 if not."""
    if spec.training.iterations_per_epoch is not None or len(curve) < 2:
        return spec.training.iterations_per_epoch or 0
    return curve[1].iteration // _epochs(spec, 2)[1]


def _from_curve(spec: FoldSpec, result: FoldResult) -> dict[str, Any]:
    """Return the fields that follow from the curve of a training (`protocols.training.train_fold`)."""
    curve, fixed, failed = result.curve, spec.checkpoint_epoch is not None, result.status == "nan"
    scores = [point.map_at_r or 0.0 for point in curve]
    epochs, steps = _epochs(spec, len(curve)), _steps_per_epoch(spec, curve)
    untrained = None if fixed else scores[0] if scores else 0.0
    if failed:
        best = None if fixed else 0.0
        return {
            "best_iteration": 0,
            "best_map_at_r": best,
            "untrained_map_at_r": untrained,
            "beats_untrained": False,
        }
    # The network before the training is the model only where nothing is trained.
    first = 0 if spec.method.loss is None else 1
    place = max(range(first, len(scores)), key=scores.__getitem__, default=0)
    best = None if fixed else scores[place]
    return {
        "best_iteration": steps * (spec.checkpoint_epoch if spec.checkpoint_epoch is not None else epochs[place]),
        "best_map_at_r": best,
        "untrained_map_at_r": untrained,
        "beats_untrained": best is None or untrained is None or best > untrained,
        "iterations": curve[-1].iteration,
        "stopped_by": _stopped_by(spec, scores, epochs),
    }


def _stopped_by(spec: FoldSpec, scores: Sequence[float], epochs: Sequence[int]) -> str:
    """Return what must have ended a training with these validations."""
    if spec.method.loss is None:
        return "untrained"
    best = 0
    for number in range(1, len(scores)):
        if scores[number] > scores[best]:
            best = number
        if spec.checkpoint_epoch is None and epochs[number] - epochs[best] > spec.training.patience:
            return "patience" if number == len(scores) - 1 else f"patience, {len(scores) - 1 - number} validations ago"
    return "max_epochs" if epochs[-1] == spec.training.max_epochs else "nothing yet"


@dataclass(frozen=True)
class CheckedTraining:
    """What the checks of other records need of a training.

    Attributes:
        spec: The training.
        objective: What a search is told of it; None without validation classes.
        steps: Iterations up to its checkpoint.
        iterations: Iterations up to its end.
        failed: Why it diverged; None if it did not.
        flag: Its warning for readers, or None.
        whole: The result with its curve, only of trainings that chose an epoch.
    """

    spec: FoldSpec
    objective: float | None
    steps: int
    iterations: int
    failed: str | None
    flag: str | None
    whole: FoldResult | None = None

    @classmethod
    def of(cls, spec: FoldSpec, result: FoldResult, *, whole: bool) -> "CheckedTraining":
        """Keep what is needed of a result, and its curve, which is long, if `whole`."""
        objective = None if result.best_map_at_r is None else result.objective
        ends = result.best_iteration, result.iterations
        return cls(spec, objective, *ends, result.reason, result.flag, result if whole else None)


def test_curve_faults(curve: TestCurve, result: FoldResult) -> Iterator[str]:
    """Yield how test scores along a training contradict its validations, which are at the same iterations."""
    iterations = [point.iteration for point in curve.points]
    validated = [point.iteration for point in result.curve]
    # A training that diverged can have ended between a validation and its test.
    if iterations != validated[: len(iterations)] or (result.status == "ok" and len(iterations) < len(validated)):
        yield "it is not at the training's validations"
    for point in curve.points:
        yield from score_faults(point.scores)
