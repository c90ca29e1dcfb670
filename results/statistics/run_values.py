"""Values of a metric by run, with keys that match the runs of two methods.

The runs of one search share what the search found and are alike, so where searches are repeated, a search counts once.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from results.records.records import RunRecord, Scores
from results.statistics.intervals import Interval, student_t_interval

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
    """Key of a search that was repeated. Searches of two methods with equal keys match."""

    dataset: str
    seed: int
    search: int


ValueKey = RunKey | SearchKey
"""What a value belongs to: a run, or a search with all its runs."""


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
    one search are alike and only the searches are independent: a search then counts once, with the mean of its runs.
    The methods are in the order of their first runs.
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


_Value = TypeVar("_Value")


def by_search(values: Mapping[RunKey, _Value]) -> dict[SearchKey, list[_Value]]:
    """Group the values of a method's runs by search."""
    groups: dict[SearchKey, list[_Value]] = {}
    for key, value in values.items():
        groups.setdefault(SearchKey(key.dataset, key.seed, key.search), []).append(value)
    return groups


def independent_values(values: Mapping[RunKey, float]) -> dict[ValueKey, float]:
    """Return the values themselves if they belong to one search, else the mean of each search."""
    groups = by_search(values)
    if len(groups) < 2:
        return {key: value for key, value in values.items()}  # noqa: C416 - a dictionary of the wider type
    return {key: float(np.mean(runs)) for key, runs in groups.items()}


def search_interval(values: Mapping[RunKey, float]) -> Interval:
    """Compute a method's mean over runs with its interval over runs, or over searches if there are several."""
    interval = student_t_interval(list(independent_values(values).values()))
    return Interval(interval.mean, interval.half_width, len(values))
