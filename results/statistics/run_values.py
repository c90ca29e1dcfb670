"""One number per run, by the key that matches runs of two methods: dataset, base seed, number of the reproduction."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from results.records import RunRecord, Scores

EmbeddingKind = Literal["separated", "concatenated"]
"""The mean over the folds' models, or their ensemble."""

EMBEDDING_KINDS: tuple[EmbeddingKind, ...] = ("separated", "concatenated")


class RunKey(NamedTuple):
    """What two methods' runs must have in common to be a matched pair."""

    dataset: str
    seed: int
    run: int


def value_of(record: RunRecord, metric: str = "map_at_r", kind: EmbeddingKind = "concatenated") -> float:
    """A run's value of a metric.

    Args:
        record: The run.
        metric: One of the headline metrics, a further metric that the run was evaluated with, or
            `total_training_steps`: iterations of a training up to its stop, mean over the run's models, as Chance
            Constraints' Table 3 counts them.
        kind: Of the embeddings that were tested.

    Returns:
        The value in the records' unit: a fraction of 1 for the headline metrics.

    Raises:
        ValueError: If the run has no such value.
    """
    if metric in Scores.model_fields:
        return float(getattr(getattr(record, kind), metric))
    if metric == "total_training_steps" and record.iterations is not None:
        return record.iterations / len(record.fold_fingerprints)
    further: dict[str, float] = getattr(record, f"metrics_{kind}")
    if metric not in further:
        raise ValueError(f"run {record.run} of {record.method} has no {kind} {metric}; it was not evaluated with it")
    return further[metric]


def run_values(
    records: Iterable[RunRecord], metric: str = "map_at_r", kind: EmbeddingKind = "concatenated"
) -> dict[str, dict[RunKey, float]]:
    """The runs' values of a metric, by method; the methods are in the order of their first runs.

    Raises:
        ValueError: If a method has the same run twice, or a run has no such metric.
    """
    values: dict[str, dict[RunKey, float]] = {}
    for record in records:
        method_values = values.setdefault(record.method, {})
        key = RunKey(record.dataset, record.seed, record.run)
        if key in method_values:
            raise ValueError(f"{record.method} has run {record.run} of seed {record.seed} on {record.dataset} twice")
        method_values[key] = value_of(record, metric, kind)
    return values
