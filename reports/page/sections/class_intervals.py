"""Intervals over test classes: for the mean of each method, and for its distance to the best method."""

from collections.abc import Mapping
from dataclasses import dataclass

from reports.page.material import Material, Score
from reports.tables.table import Cell, Column, NumberFormat, Row, Sheet, Table
from reports.wording import capitalized
from results.statistics.class_bootstrap import ClassInterval, class_difference, class_interval
from results.statistics.intervals import Interval

RESAMPLES, RESAMPLES_OF_MANY, MANY_CLASSES = 10_000, 2_000, 1_000
"""Number of bootstrap draws for an interval. Above `MANY_CLASSES` classes fewer draws are made, to save minutes."""

_HEADER = (
    *("method", "mean", "low", "high", "classes_low", "classes_high"),
    *("below_best", "below_best_low", "below_best_high"),
)
_FROM_TO = NumberFormat(digits=2, scale=100, ends="to")


@dataclass(frozen=True)
class OverClasses:
    """Intervals of one score over test classes.

    Attributes:
        means: Intervals of the means, by method.
        gaps: Intervals of the distances below the best method, by method, for all other methods.
    """

    score: Score
    best: str
    means: Mapping[str, ClassInterval]
    gaps: Mapping[str, ClassInterval]


def over_classes(material: Material) -> OverClasses | None:
    """Compute the intervals of the first score for the methods whose runs have class scores; None without such runs."""
    score, records = material.scores[0], material.records
    apart = material.measured.summary.left_out
    methods = [key for key in material.best_first if key not in apart and all(run.class_scores for run in records[key])]
    if not methods:
        return None
    best, *others = methods
    many = records[best][0].test_classes > MANY_CLASSES
    resamples = RESAMPLES_OF_MANY if many else RESAMPLES
    metric, kind = score.metric, score.kind
    means = {key: class_interval(records[key], metric, kind, resamples=resamples) for key in methods}
    gaps = {key: class_difference(records[best], records[key], metric, kind, resamples=resamples) for key in others}
    return OverClasses(score, best, means, gaps)


def classes_table(material: Material, intervals: OverClasses) -> Table:
    """Build the table of intervals over runs and over test classes."""
    best = intervals.means[intervals.best]
    score = capitalized(intervals.score.name)
    over, again = "runs", "the settings found are trained again"
    if material.unit == "search":
        over, again = "searches", "the methods are searched and trained again"
    of_means = material.intervals(intervals.score)
    caption = (
        f"{score} in percent with 95 % intervals. Over {over}: variation of the mean if {again}, tested on the same "
        "classes. Over classes (BCa bootstrap, "
        f"{best.resamples:,} draws of {best.classes} test classes): variation of the mean with other test classes. "
        f"Last column: distance to {material.titles[intervals.best]} in percentage points, on the same drawn classes."
    )
    columns = (Column("mean"), Column(f"over {over}"), Column("over classes"), Column("below the best, over classes"))
    rows, values = [], []
    for key, title in material.titles.items():
        if key in intervals.means:
            mean, classes, gap = of_means[key], intervals.means[key], intervals.gaps.get(key)
            rows.append(Row.single(title, _cells(mean, classes, gap, f"one {material.unit}"), key))
            below_best = (None,) * 3 if gap is None else (gap.mean, gap.low, gap.high)
            values.append((key, mean.mean, mean.low, mean.high, classes.low, classes.high, *below_best))
    return Table("Dependence on the test classes", caption, columns, tuple(rows), Sheet(_HEADER, tuple(values)))


def _cells(mean: Interval, classes: ClassInterval, gap: ClassInterval | None, alone: str) -> tuple[Cell, ...]:
    below_best = Cell(0.0, written="the best")
    if gap is not None:
        note = "" if _ends(gap) else "(one class)"
        below_best = Cell(gap.mean, interval=_ends(gap), form=_FROM_TO, note=note)
    ends, ends_of_classes = _ends(mean), _ends(classes)
    return (
        Cell(mean.mean, form=_FROM_TO),
        Cell(interval=ends, form=_FROM_TO) if ends else Cell(alone),
        Cell(interval=ends_of_classes, form=_FROM_TO) if ends_of_classes else Cell("one class"),
        below_best,
    )


def _ends(interval: Interval | ClassInterval) -> tuple[float, float] | None:
    return None if interval.low is None or interval.high is None else (interval.low, interval.high)
