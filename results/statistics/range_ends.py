"""Settings that a search found at an end of a range: a wider range could hold a better one."""

from dataclasses import dataclass
from typing import Literal

from results.store.experiment_results import MeasuredExperiment


@dataclass(frozen=True)
class RangeEnd:
    """A hyperparameter whose best value lies at an end of its range.

    Attributes:
        method: Key of the method.
        target: The hyperparameter, such as `optimizer.lr`.
        end: The end.
        value: Value of that end.
        found: Number of searches that found it.
        searches: Number of the method's searches.
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
