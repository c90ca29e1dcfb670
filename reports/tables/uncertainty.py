"""Table of the sources of doubt: how wide runs, searches and test classes make the interval of each difference."""

from dataclasses import replace

from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.method_comparison import ComparisonResult
from results.statistics.primary_comparison import primary_comparison, primary_score
from results.statistics.uncertainty import Uncertainty, uncertainty_of_pairs
from results.store.experiment_results import MeasuredExperiment

_HEADER = (
    *("a", "b", "metric", "variant", "difference", "runs_half_width", "search_half_width", "classes_half_width"),
    *("together_half_width", "paired"),
)
_WIDTH = NumberFormat(digits=2, scale=100)


def uncertainty_table(measured: MeasuredExperiment) -> Table:
    """Build the table of the sources of doubt, with one row per pair of methods in the order of the experiment.

    Returns:
        Differences of the primary score and half widths of 95 % intervals in percentage points. The sheet has fractions
        of 1. Methods with a run without class scores and rows that are not compared are left out.
    """
    score, titles = primary_score(measured), measured.summary.compared
    metric, kind = score.metric, score.embeddings
    runs = {key: [record for record in measured.records if record.method == key] for key in titles}
    with_classes = {key: own for key, own in runs.items() if own and all(run.class_scores for run in own)}
    comparison = primary_comparison(measured)
    constant = measured.summary.constant
    pairs = [
        _as_tested(pair, comparison) for pair in uncertainty_of_pairs(with_classes, metric, kind, constant=constant)
    ]
    without = [titles[key] for key, own in runs.items() if own and key not in with_classes]
    names = ("difference", "runs", "search", "classes", "all together")
    return Table(
        title=f"{measured.summary.title}: where the doubt comes from",
        caption=_caption(pairs, metric, kind),
        columns=tuple(Column(name) for name in names),
        rows=tuple(Row.single(f"{titles[pair.a]} − {titles[pair.b]}", _cells(pair)) for pair in pairs),
        sheet=Sheet(_HEADER, tuple(_values(pair, metric, kind) for pair in pairs)),
        first="Methods",
        notes=(f"Runs without class scores: {', '.join(without)}.",) if without else (),
    )


def _as_tested(pair: Uncertainty, comparison: ComparisonResult | None) -> Uncertainty:
    """Take the doubt from runs from the comparison of the methods, unless it contains repeated searches."""
    tested = None if comparison is None else comparison.pair(pair.a, pair.b).half_width
    if tested is None or pair.search is not None:
        return pair
    return replace(pair, runs=tested, together=None if pair.together is None else max(pair.together, tested))


def _caption(pairs: list[Uncertainty], metric: str, kind: str) -> str:
    if not pairs:
        return "Fewer than two methods have runs with class scores."
    repeated = any(pair.search is not None for pair in pairs)
    # With repeated searches, the comparison tests the means of the searches.
    as_tested = "" if repeated else ", as in the table of differences"
    sentences = [
        f"Differences of {kind} {HEADLINE_METRICS.get(metric, metric)} in percentage points, and the half widths of "
        "their 95 % intervals by source. Runs: only new trainings of the settings found, tested on the same classes"
        f"{as_tested}. Classes: only other test classes. All together: a crossed random model of "
        "runs and classes, never narrower than one source. The half widths are not corrected for the number of pairs."
    ]
    if repeated:
        sentences.append("Search: only other searches. All together contains it.")
    else:
        sentences.append("No search was repeated, so the doubt from the search is not known and in no column.")
    return " ".join(sentences)


def _cells(pair: Uncertainty) -> list[Cell]:
    difference = Cell(pair.difference, form=POINTS, kind="measured")
    return [difference, *(_width(width) for width in (pair.runs, pair.search, pair.classes, pair.together))]


def _width(width: float | None) -> Cell:
    return Cell() if width is None else Cell(width, form=_WIDTH)


def _values(pair: Uncertainty, metric: str, kind: str) -> tuple[Value, ...]:
    widths = (pair.runs, pair.search, pair.classes, pair.together)
    return (pair.a, pair.b, metric, kind, pair.difference, *widths, "yes" if pair.paired else "no")
