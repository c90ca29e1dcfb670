"""Studies of one method, as an opened experiment would have them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from protocols.setup import Setup
from protocols.study import Study
from results.spec.method import Method
from results.spec.plan import PlannedRow
from results.spec.range import Range
from results.spec.search_settings import SearchSettings
from results.store.searches import Searches
from tests.support.labs import TrialsInMemory


def row_of(method: Method, ranges: Mapping[str, Range] | None = None, **fields: Any) -> PlannedRow:
    """A row without the numbers of its trials and runs."""
    return PlannedRow(key=method.name, title=method.name, method=method, ranges=dict(ranges or {}), **fields)


def study_of(
    setup: Setup,
    method: Method,
    ranges: Mapping[str, Range] | None = None,
    log: Searches | None = None,
    *,
    reproductions: int = 10,
    enqueue: Sequence[dict[str, JsonValue]] = (),
    **search: Any,
) -> Study:
    """A study whose log is in memory; further arguments are those of the search's settings."""
    settings, drawn = SearchSettings(**search), setup.conditions.trunk.weights == "random"
    row = row_of(method, ranges, enqueue=tuple(enqueue))
    planned = row.with_budget(settings, reproductions, untrained_weights=drawn)
    return Study(planned, setup, settings, TrialsInMemory() if log is None else log)
