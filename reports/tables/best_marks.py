"""Which values of a column are the best, and which cannot be told from it."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

from reports.tables.table import Mark
from results.statistics.comparisons import RunValues, best_of

Name = TypeVar("Name", bound=Hashable)


def column_marks(column: Mapping[Name, RunValues]) -> dict[Name, Mark]:
    """Marks by name; none where there are fewer than two to compare. The highest mean is the best."""
    if len(column) < 2:
        return {}
    # Comparisons go by text; places stand in for names that are none.
    names = {str(place): name for place, name in enumerate(column)}
    best = best_of({place: column[name] for place, name in names.items()})
    marks: dict[Name, Mark] = {names[best.name]: "best"}
    marks.update({names[place]: "tied" for place in best.tied})
    marks.update({names[place]: "untested" for place in best.untested})
    return marks
