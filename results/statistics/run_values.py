"""Values of a metric by run, with keys that match the runs of two methods."""

from collections.abc import Iterable
from typing import Literal

from results.records.records import RunRecord, Scores
from results.statistics.nested_runs import RunKey, ValueKey, independent_values

EmbeddingKind = Literal["separated", "concatenated"]
"""`separated` is the mean over the folds' models, `concatenated` their ensemble."""

EMBEDDING_KINDS: tuple[EmbeddingKind, ...] = ("separated", "concatenated")


def value_of(record: RunRecord, metric: str = "map_at_r", kind: EmbeddingKind = "concatenated") -> float:
    """Return the value of a metric in a run.

    The metric is a headline metric, a further metric that the run was evaluated with, or `total_training_steps`:
    iterations up to the end of a training, mean over the run's trainings, as in Table 3 of the Chance Constraints
    paper. A run without such a value is refused with a ValueError.
    """
    if metric in Scores.model_fields:
        return float(getattr(getattr(record, kind), metric))
    if metric == "total_training_steps" and record.iterations is not None:
        return record.iterations / len(record.fold_fingerprints)
    further: dict[str, float] = getattr(record, f"metrics_{kind}")
    if metric not in further:
        raise ValueError(f"{record.name} of {record.method} has no {kind} {metric}; it was not evaluated with it")
    return further[metric]


def run_values(
    records: Iterable[RunRecord], metric: str = "map_at_r", kind: EmbeddingKind = "concatenated"
) -> dict[str, dict[ValueKey, float]]:
    """Return the independent values of a metric by method, for intervals and tests.

    Runs of one search are independent given the setting that it found. If a method's search was repeated, the runs of
    one search are alike and only the searches are independent: a search then counts once, with the mean of its runs
    (`nested_runs`). The methods are in the order of their first runs.
    """
    by_method = values_by_run(records, metric, kind)
    return {method: independent_values(values) for method, values in by_method.items()}


def values_by_run(
    records: Iterable[RunRecord], metric: str = "map_at_r", kind: EmbeddingKind = "concatenated"
) -> dict[str, dict[RunKey, float]]:
    """Return the values of a metric by method and run. Arguments and errors are those of `run_values`."""
    values: dict[str, dict[RunKey, float]] = {}
    for record in records:
        method_values = values.setdefault(record.method, {})
        key = RunKey(record.dataset, record.seed, record.run, record.search)
        if key in method_values:
            raise ValueError(f"{record.method} has {record.name} of seed {record.seed} on {record.dataset} twice")
        method_values[key] = value_of(record, metric, kind)
    return values
