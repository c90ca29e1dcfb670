"""Which values of a column are the best, and which cannot be told apart from the best."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

from reports.tables.table import Mark
from results.statistics.comparisons import RunValues, best_of

_Key = TypeVar("_Key", bound=Hashable)


def column_marks(column: Mapping[_Key, RunValues]) -> dict[_Key, Mark]:
    """The marks of a column's values.

    Args:
        column: Runs by the key of their row.

    Returns:
        Marks by key, for the rows that have one. The highest mean is the best. A column with fewer than two rows has
        no marks.
    """
    if len(column) < 2:
        return {}
    # `best_of` takes texts as names.
    keys = {str(place): key for place, key in enumerate(column)}
    best = best_of({name: column[key] for name, key in keys.items()})
    marks: dict[_Key, Mark] = {keys[best.name]: "best"}
    marks.update({keys[name]: "tied" for name in best.tied})
    marks.update({keys[name]: "untested" for name in best.untested})
    return marks
