"""Values of a metric by run, and grouped by search."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeVar

from results.records.records import RunRecord, Scores

EmbeddingKind = Literal["separated", "concatenated"]
"""`separated` is the mean over the folds' models, `concatenated` their ensemble."""

EMBEDDING_KINDS: tuple[EmbeddingKind, ...] = ("separated", "concatenated")


class RunKey(NamedTuple):
    """Key of a run: dataset, base seed, number of the reproduction, number of its search. Equal keys match."""

    dataset: str
    seed: int
    run: int
    search: int = 0


class SearchKey(NamedTuple):
    """Key of a search: dataset, base seed, number of the search."""

    dataset: str
    seed: int
    search: int


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


def values_by_run(
    records: Iterable[RunRecord], metric: str = "map_at_r", kind: EmbeddingKind = "concatenated"
) -> dict[str, dict[RunKey, float]]:
    """Return the values of a metric by method and run; errors are those of `value_of`."""
    values: dict[str, dict[RunKey, float]] = {}
    for record in records:
        method_values = values.setdefault(record.method, {})
        key = RunKey(record.dataset, record.seed, record.run, record.search)
        if key in method_values:
            raise ValueError(f"{record.method} has {record.name} of seed {record.seed} on {record.dataset} twice")
        method_values[key] = value_of(record, metric, kind)
    return values


_Value = TypeVar("_Value")


def by_search(values: Mapping[RunKey, _Value]) -> dict[SearchKey, list[_Value]]:
    """Group the values of a method's runs by search."""
    groups: dict[SearchKey, list[_Value]] = {}
    for key, value in values.items():
        groups.setdefault(SearchKey(key.dataset, key.seed, key.search), []).append(value)
    return groups
