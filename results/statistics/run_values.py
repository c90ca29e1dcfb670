"""One number per run, by what makes runs of two methods a pair: dataset, base seed and number of the reproduction."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from results.records import RunRecord, Scores

Variant = Literal["separated", "concatenated"]


class RunKey(NamedTuple):
    """What two methods' runs must have in common to be a matched pair."""

    dataset: str
    seed: int
    run: int


def value_of(record: RunRecord, metric: str = "map_at_r", variant: Variant = "concatenated") -> float:
    """A run's value of a metric, in the records' units (fractions of 1 for MLRC's three).

    metric: one of MLRC's three, a further metric that the run was evaluated with, or `total_training_steps`, the
    iterations of a training up to its stop, mean over the run's models, as Chance Constraints' Table 3 counts them.
    Raises ValueError if the run has no such value.
    """
    if metric in Scores.model_fields:
        return float(getattr(getattr(record, variant), metric))
    if metric == "total_training_steps" and record.iterations is not None:
        return record.iterations / len(record.fold_fingerprints)
    further: dict[str, float] = getattr(record, f"metrics_{variant}")
    if metric not in further:
        raise ValueError(f"run {record.run} of {record.method} has no {variant} {metric}; it was not evaluated with it")
    return further[metric]


def run_values(
    records: Iterable[RunRecord], metric: str = "map_at_r", variant: Variant = "concatenated"
) -> dict[str, dict[RunKey, float]]:
    """By method, the runs' values of a metric; methods in the order in which they first come.

    Raises ValueError if a method has the same run twice, or a run has no such metric.
    """
    values: dict[str, dict[RunKey, float]] = {}
    for record in records:
        own = values.setdefault(record.method, {})
        key = RunKey(record.dataset, record.seed, record.run)
        if key in own:
            raise ValueError(f"{record.method} has run {record.run} of seed {record.seed} on {record.dataset} twice")
        own[key] = value_of(record, metric, variant)
    return values
