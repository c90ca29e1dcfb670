"""Marks for the values of a column: the best, and those that are not significantly below it."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

from reports.tables.table import Mark
from results.statistics.comparisons import RunValues, best_of

_Key = TypeVar("_Key", bound=Hashable)


def column_marks(column: Mapping[_Key, RunValues]) -> dict[_Key, Mark]:
    """Mark the values of a column.

    Args:
        column: Values by run, by the key of their row.

    Returns:
        Marks by key, for the rows that have a mark. The highest mean is the best. A column with fewer than two rows
        has no marks.
    """
    if len(column) < 2:
        return {}
    # `best_of` takes only texts as names.
    keys = {str(index): key for index, key in enumerate(column)}
    best = best_of({name: column[key] for name, key in keys.items()})
    marks: dict[_Key, Mark] = {keys[best.name]: "best"}
    marks.update({keys[name]: "tied" for name in best.tied})
    marks.update({keys[name]: "untested" for name in best.untested})
    return marks
