"""Which of a training's models counts, as classes over the same records: honest selection and peeking.

Trainings choose by validation as they run; nothing here changes what was chosen. These say, afterwards and from test
curves that were recorded, what a choice leads to on the test classes.
"""

from dataclasses import dataclass
from typing import Protocol

from results.records import FoldResult, TestCurve, TestPoint


class Selection(Protocol):
    """A way to choose among the models along a training. label: how tables call it."""

    label: str

    def choose(self, result: FoldResult, curve: TestCurve) -> TestPoint | None:
        """The chosen model's test scores, or None where the curve does not hold them."""


@dataclass(frozen=True)
class ValidationSelection:
    """The model that validation chose, or whose epoch was settled by another training's validation: the default."""

    label: str = "validation"

    def choose(self, result: FoldResult, curve: TestCurve) -> TestPoint | None:
        """The test scores at the training's checkpoint."""
        return next((point for point in curve.points if point.iteration == result.best_iteration), None)


@dataclass(frozen=True)
class OracleSelection:
    """The model with the best test score, as released code of several papers chooses (specification, section 10).

    Never a result: it has seen the answer. metric: one of MLRC's three.
    """

    metric: str = "map_at_r"
    label: str = "ORACLE, chosen on the test classes"

    def choose(self, result: FoldResult, curve: TestCurve) -> TestPoint | None:
        """The best of all trained models; the untrained one counts only where it is the model, as in validation."""
        trained = [point for point in curve.points if point.iteration > 0 or result.best_iteration == 0]
        return max(trained, key=lambda point: float(getattr(point.scores, self.metric)), default=None)
