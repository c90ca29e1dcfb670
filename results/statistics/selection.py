"""Two ways to select a checkpoint of a training: by validation, or by test scores (peeking).

A training selects its checkpoint by validation while it runs, and nothing here changes that. The classes here look up
the test scores of a selected checkpoint in the recorded test curve.
"""

from dataclasses import dataclass

from results.records import FoldResult, TestCurve, TestPoint


@dataclass(frozen=True)
class ValidationSelection:
    """The default: the checkpoint that was selected by validation, of this training or of an earlier one."""

    label: str = "validation"

    def choose(self, result: FoldResult, curve: TestCurve) -> TestPoint | None:
        """Return the test scores of the training's checkpoint, or None if the curve does not have them."""
        return next((point for point in curve.points if point.iteration == result.best_iteration), None)


@dataclass(frozen=True)
class OracleSelection:
    """The checkpoint with the best test score, as in the released code of several papers (specification, section 10).

    It is never used for a result, because it uses the test classes.

    Attributes:
        metric: The headline metric that selects.
        label: Name of the selection in tables.
    """

    metric: str = "map_at_r"
    label: str = "ORACLE, chosen on the test classes"

    def choose(self, result: FoldResult, curve: TestCurve) -> TestPoint | None:
        """Return the best test scores along the training.

        The untrained network can be selected only if validation selected it too.
        """
        trained = [point for point in curve.points if point.iteration > 0 or result.best_iteration == 0]
        return max(trained, key=lambda point: float(getattr(point.scores, self.metric)), default=None)
