"""Table of the sources of uncertainty: how wide each of them makes the interval of a difference."""

import math
from dataclasses import replace

from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.comparison import ComparisonResult
from results.statistics.deviations import WIDENING
from results.statistics.finding import origin_findings
from results.statistics.intervals import t_quantile
from results.statistics.primary_comparison import primary_comparison, primary_score
from results.statistics.uncertainty import Uncertainty, uncertainty_of_pairs
from results.store.experiment_results import MeasuredExperiment
from results.wording import joined

_HEADER = (
    *("a", "b", "metric", "variant", "difference", "runs_half_width", "search_half_width", "classes_half_width"),
    *("together_half_width", "paired"),
)
_WIDTH = NumberFormat(digits=2, scale=100)


_WIDTHS = ("runs", "search", "classes", "together")


def uncertainty_table(measured: MeasuredExperiment) -> Table:
    """Build the table of the sources of uncertainty, with one row per pair that is compared.

    Returns:
        Differences of the primary score and half widths of 95 % intervals in percentage points. The sheet has fractions
        of 1. Methods with a run without class scores, or without all of their searches, are left out.
    """
    score, titles, comparison = primary_score(measured), measured.summary.compared, primary_comparison(measured)
    metric, kind = score.metric, score.embeddings
    complete = [key for key, own in (comparison.values if comparison else {}).items() if own.missing is None]
    runs = {key: [record for record in measured.records if record.method == key] for key in complete}
    with_classes = {key: own for key, own in runs.items() if all(run.class_scores for run in own)}
    estimated = uncertainty_of_pairs(with_classes, metric, kind, constant=measured.summary.constant)
    pairs = [_as_tested(pair, comparison) for pair in estimated if comparison and comparison.pair(pair.a, pair.b)]
    without = [titles[key] for key in runs if key not in with_classes]
    rows, values = [], []
    for pair in pairs:
        widths = [getattr(pair, name) for name in _WIDTHS]
        cells = [Cell(pair.difference, form=POINTS, kind="measured"), *(Cell(width, form=_WIDTH) for width in widths)]
        rows.append(Row(f"{titles[pair.a]} − {titles[pair.b]}", cells))
        values.append((pair.a, pair.b, metric, kind, pair.difference, *widths, "yes" if pair.paired else "no"))
    return Table(
        title=f"{measured.summary.title}: where the uncertainty comes from",
        caption=f"Differences of {kind} {HEADLINE_METRICS.get(metric, metric)} in percentage points, and the half "
        "widths of their 95 % intervals by source."
        if pairs
        else "No two methods that are compared have all their runs, with class scores.",
        columns=tuple(Column(name) for name in ("difference", "runs", "search", "classes", "all together")),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(values)),
        first="Methods",
        notes=(
            *(finding.sentences for finding in origin_findings(measured)),
            *([f"Runs without class scores: {joined(without)}."] if without else []),
        ),
        remarks=(_reading(comparison),) if comparison and pairs else (),
    )


def _as_tested(pair: Uncertainty, comparison: ComparisonResult) -> Uncertainty:
    """Take the half width that the comparison tested with, or the search's that it assumed."""
    tested = comparison.pair(pair.a, pair.b)
    width = None if tested is None else tested.half_width
    if width is None:
        return pair
    if comparison.unit == "run":
        return replace(pair, runs=width, together=_widest(pair.together, width))
    if comparison.assumed is None:
        return replace(pair, search=width, together=_widest(pair.together, width))
    searched = sum(comparison.values[key].searched for key in (pair.a, pair.b))
    assumed = WIDENING * comparison.assumed.deviation * searched**0.5
    search = t_quantile(0.975, comparison.assumed.degrees) * assumed
    # The crossed model has runs and classes; the search is independent of both.
    added = None if pair.together is None else math.hypot(pair.together, search)
    return replace(pair, search=search, together=_widest(added, width))


def _widest(together: float | None, width: float) -> float | None:
    return None if together is None else max(together, width)


def _reading(comparison: ComparisonResult) -> str:
    if comparison.unit == "search":
        search = "other searches with their runs, as in the table of differences"
    elif comparison.unit == "run":
        search = "nothing was searched"
    elif comparison.assumed is None:
        search = "not known, since each method was searched once"
    else:
        search = f"assumed as twice the deviation in {comparison.assumed.record}, since each method was searched once"
    return (
        "Runs: only new trainings of the settings found, on the same classes. "
        f"Search: {search}. Classes: only other test classes. All together: a crossed random model of these sources, "
        "never narrower than one of them. The half widths are not corrected for the number of pairs."
    )
