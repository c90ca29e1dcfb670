"""Marks for the values of the primary score: the highest mean, and the methods that no other is better than."""

from reports.tables.table import Mark
from results.statistics.method_comparison import ComparisonResult


def marks_of(comparison: ComparisonResult | None) -> dict[str, Mark]:
    """Mark the methods of a comparison.

    Args:
        comparison: The comparison; None without runs.

    Returns:
        Marks by method, for the methods that have one. A single method has none.
    """
    if comparison is None or len(comparison.methods) < 2:
        return {}
    marks: dict[str, Mark] = dict.fromkeys(comparison.leading, "tied")
    marks.update(dict.fromkeys(comparison.untested, "untested"))
    marks[comparison.highest] = "best"
    return marks
