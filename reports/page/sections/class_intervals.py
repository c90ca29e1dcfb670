"""Intervals over test classes: of every method's mean, and of its distance to the best on the same drawn classes."""

from collections.abc import Mapping
from dataclasses import dataclass

from reports.page.content import Cell, Column, Table, TableRow
from reports.page.material import Material, Score
from results.statistics.class_bootstrap import ClassInterval, class_difference, class_interval
from results.statistics.intervals import student_t_interval

RESAMPLES, RESAMPLES_OF_MANY, MANY_CLASSES = 10_000, 2_000, 1_000
"""Draws of test classes for an interval; fewer where there are so many classes that it would take minutes."""


@dataclass(frozen=True)
class OverClasses:
    """Of one score. best: the method of the highest mean; means: by method; gaps: what each other is below the best."""

    score: Score
    best: str
    means: Mapping[str, ClassInterval]
    gaps: Mapping[str, ClassInterval]


def over_classes(material: Material) -> OverClasses | None:
    """The first score's intervals, for the methods whose runs kept class scores; None if none did."""
    score, known = material.scores[0], material.records
    kept = [key for key in material.best_first if all(run.class_scores for run in known[key])]
    if not kept:
        return None
    best, *others = kept
    many = known[best][0].test_classes > MANY_CLASSES
    resamples = RESAMPLES_OF_MANY if many else RESAMPLES
    metric, variant = score.metric, score.variant
    means = {key: class_interval(known[key], metric, variant, resamples=resamples) for key in kept}
    gaps = {key: class_difference(known[best], known[key], metric, variant, resamples=resamples) for key in others}
    return OverClasses(score, best, means, gaps)


def classes_table(material: Material, found: OverClasses) -> Table:
    """Intervals over runs beside intervals over classes."""
    best = found.means[found.best]
    caption = (
        f"{found.score.name[:1].upper()}{found.score.name[1:]} in percent with 95 % intervals. Over runs (Student-t): "
        "how far the mean moves when everything is trained again and tested on the same classes. Over classes (BCa "
        f"bootstrap, {best.resamples:,} draws of {best.classes} test classes): how far it moves with other classes. "
        f"Last column: the distance to {material.titles[found.best]}, in points, on the same drawn classes."
    )
    columns = (Column("mean"), Column("over runs"), Column("over classes"), Column("below the best, over classes"))
    rows = tuple(_row(material, key, found) for key in material.titles if key in found.means)
    return Table("Would other classes say the same?", columns, rows, caption)


def _row(material: Material, key: str, found: OverClasses) -> TableRow:
    runs = student_t_interval(list(material.values(found.score)[key].values()))
    gap = found.gaps.get(key)
    behind = Cell("the best", sort=0.0)
    if gap is not None:
        behind = Cell(f"{100 * gap.mean:.2f}", f"({_ends(gap.low, gap.high, 'one class')})", sort=gap.mean)
    means = found.means[key]
    cells = (
        Cell(f"{100 * runs.mean:.2f}", sort=runs.mean),
        Cell(_ends(runs.low, runs.high, "one run"), sort="" if runs.low is None else runs.low),
        Cell(_ends(means.low, means.high, "one class"), sort="" if means.low is None else means.low),
        behind,
    )
    return TableRow(material.titles[key], cells, key=key)


def _ends(low: float | None, high: float | None, without: str) -> str:
    return without if low is None or high is None else f"{100 * low:.2f} to {100 * high:.2f}"
