"""Table of the differences between methods: every pair that was asked for, with the verdicts of the one comparison.

Two things stand apart: which method is better, and whether the difference is beyond the margin.
"""

from collections.abc import Mapping
from itertools import combinations

from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.compare import power_words
from results.statistics.comparison import ComparedPair, ComparisonResult
from results.statistics.findings import findings_of
from results.statistics.intervals import Interval
from results.statistics.primary_comparison import primary_comparison, primary_score
from results.store.experiment_results import MeasuredExperiment

_OF_TEST = ("degrees", "p", "p_better", "p_beyond", "p_equal", "smallest", "direction", "size", "untested")
_HEADER = (
    *("a", "b", "metric", "variant", "unit", "difference", "low", "high", "units_a", "units_b", "runs_a", "runs_b"),
    *(*_OF_TEST, "settings_direction"),
)
DISTANCE = NumberFormat(digits=2, scale=100)
P_VALUE = NumberFormat(digits=3, smallest=0.001)


def differences(measured: MeasuredExperiment) -> Table:
    """Build the table that compares pairs of methods on the primary score, as the experiment's file asks."""
    titles, score, comparison = measured.summary.methods, primary_score(measured), primary_comparison(measured)
    title = f"{measured.summary.title}: is the difference real?"
    if comparison is None or not comparison.pairs:
        return Table(title, "Fewer than two methods are compared.", (), (), Sheet(_HEADER, ()), first="Methods")
    name, pairs = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}", winners_first(comparison)
    shown = [one for one in findings_of(measured) if one.where in ("comparison", "origin") and one.level != "note"]
    return Table(
        title=title,
        caption=f"{'Interim. ' if comparison.interim else ''}Differences of {name}, the primary score, in percentage "
        f"points: {asked_pairs(comparison, titles)}, over {_UNITS[comparison.unit]}.",
        columns=_columns(comparison),
        rows=tuple(Row(f"{titles[pair.a]} − {titles[pair.b]}", _cells(comparison, pair, titles)) for pair in pairs),
        own_sheet=Sheet(_HEADER, tuple(_values(comparison, pair, score) for pair in pairs)),
        first="Methods",
        notes=tuple(finding.sentences for finding in shown),
        remarks=tuple(_reading(comparison)),
    )


def leading(comparison: ComparisonResult | None) -> set[str]:
    """The tested methods that none is shown to be better than, if any claim is made."""
    if comparison is None or comparison.interim or comparison.compare not in ("all", "best"):
        return set()
    worse = {pair.worse for pair in comparison.pairs if pair.worse}
    tested = {key for pair in comparison.pairs if pair.untested is None for key in (pair.a, pair.b)}
    return tested - worse if worse else set()


def winners_first(comparison: ComparisonResult) -> list[ComparedPair]:
    """Return the pairs from the highest mean, the higher one first; a method that others are compared with is first."""
    order = [*comparison.best_first, *(key for key in comparison.values if key not in comparison.methods)]
    reference = comparison.reference
    names = combinations(order, 2) if reference is None else ((reference, key) for key in order if key != reference)
    return [pair for a, b in names if (pair := comparison.pair(a, b))]


_UNITS = {
    "search": "means of complete searches",
    "run": "runs of the given settings",
    "single search": "runs of the settings that one search of each method found",
}


def asked_pairs(comparison: ComparisonResult, titles: Mapping[str, str]) -> str:
    """Say which pairs are compared: `all pairs`, or `each method with A, which has the highest mean`."""
    if comparison.reference is None:
        return "all pairs"
    highest = ", which has the highest mean" if comparison.compare == "best" else ""
    return f"each method with {titles[comparison.reference]}{highest}"


def settings_words(pair: ComparedPair, titles: Mapping[str, str]) -> str:
    """Write which of two settings is better: `A's setting better`, `cannot tell`, or why it was not tested."""
    return f"{titles[pair.better]}'s setting better" if pair.better else pair.untested or pair.direction


def size_words(pair: ComparedPair, margin: float) -> str:
    """Write the size of a difference against the margin: `beyond 0.5`, `within 0.5`, `cannot tell`, or nothing."""
    if pair.untested:
        return ""
    return pair.size if pair.size == "cannot tell" else f"{pair.size} {100 * margin:g}"


def _reading(comparison: ComparisonResult) -> list[str]:
    sentences, margin = [], f"{100 * comparison.margin:g} points"
    if comparison.assumed is not None:
        assumed = comparison.assumed
        sentences.append(
            f"The deviation between searches is assumed to be twice the {100 * assumed.deviation:.2f} points of "
            f"{assumed.record} ({assumed.setting})."
        )
    if comparison.tested:
        in_search = "" if comparison.unit == "run" else " in a typical search, one that does not fail"
        sentences += [
            f"Verdict: which method is better{in_search}. Size: whether the difference is beyond {margin} or within. "
            f"The probability of any wrong claim in these two columns is at most {100 * comparison.alpha:g} % "
            "(exceptions: docs, How methods are compared); p is adjusted for all these pairs.",
            "The 95 % intervals hold for one pair alone.",
            "Could have seen: the smallest true difference that would be called better with a probability of "
            f"{power_words(comparison.compare)}, by the deviations found for the two; another experiment finds others.",
        ]
    if comparison.settings is not None:
        sentences.append(
            "Settings found: which of the two settings is better by their runs, a family of tests of its own. It says "
            "nothing about the methods, whose next search would find other settings."
        )
    return sentences


def _columns(comparison: ComparisonResult) -> tuple[Column, ...]:
    counts = Column("searches" if comparison.unit == "search" else "runs")
    tested = (
        Column("size", numeric=False),
        Column("p (adjusted)"),
        counts,
        Column("could have seen"),
    )
    columns = (Column("difference"), Column("verdict", numeric=False), *(tested if comparison.tested else [counts]))
    return columns if comparison.settings is None else (*columns, Column("settings found", numeric=False))


def _cells(comparison: ComparisonResult, pair: ComparedPair, titles: Mapping[str, str]) -> list[Cell]:
    units_a, units_b = len(pair.of_a.units), len(pair.of_b.units)
    count = Cell(units_a, written="" if units_a == units_b else f"{units_a}, {units_b}")
    cells = [
        Cell(pair.difference, pair.half_width, form=POINTS, kind="measured"),
        Cell(f"{titles[pair.better]} better" if pair.better else pair.untested or pair.direction),
    ]
    if comparison.tested:
        cells += [
            Cell(size_words(pair, comparison.margin)),
            Cell(pair.p_better, form=P_VALUE),
            count,
            Cell(pair.smallest, form=DISTANCE),
        ]
    else:
        cells.append(count)
    if (settings := _of_settings(comparison, pair)) is not None:
        cells.append(Cell(settings_words(settings, titles)))
    return cells


def _of_settings(comparison: ComparisonResult, pair: ComparedPair) -> ComparedPair | None:
    return None if comparison.settings is None else comparison.settings.pair(pair.a, pair.b)


def _values(comparison: ComparisonResult, pair: ComparedPair, score: PrimaryScore) -> tuple[Value, ...]:
    settings = _of_settings(comparison, pair)
    interval = Interval(pair.difference, pair.half_width, len(pair.of_a.units))
    named = (pair.a, pair.b, score.metric, score.embeddings, comparison.unit)
    ends = (interval.mean, interval.low, interval.high)
    counts = (len(pair.of_a.units), len(pair.of_b.units), pair.of_a.runs, pair.of_b.runs)
    of_test = (getattr(pair, name) for name in _OF_TEST)
    return (*named, *ends, *counts, *of_test, settings.direction if settings else None)
