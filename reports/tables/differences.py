"""Table of the differences between methods: every pair that was asked for, with the verdicts of the one comparison.

Three things stand apart: which method is better, whether the difference is beyond the margin, and how sure that is.
"""

from collections.abc import Iterator, Mapping

from reports.tables.mixed_origins import mixed_origins
from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value
from reports.wording import asked_pairs, joined_groups, listed, possessive, shares
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.comparison_result import ComparedPair, ComparisonResult
from results.statistics.primary_comparison import primary_comparison, primary_score
from results.store.experiment_results import MeasuredExperiment

_NUMBERS = (
    *("difference", "low", "high", "units_a", "units_b", "runs_a", "runs_b", "degrees", "p", "p_better", "p_beyond"),
    *("p_equal", "smallest", "share_better", "share_within", "share_worse", "direction", "size", "untested"),
)
_HEADER = ("a", "b", "metric", "variant", "unit", *_NUMBERS, "settings_direction")
_DISTANCE = NumberFormat(digits=2, scale=100)
_P_VALUE = NumberFormat(digits=3, smallest=0.001)


def differences(measured: MeasuredExperiment) -> Table:
    """Build the table that compares pairs of methods on the primary score, as the experiment's file asks."""
    titles, score, comparison = measured.summary.methods, primary_score(measured), primary_comparison(measured)
    title = f"{measured.summary.title}: is the difference real?"
    if comparison is None or not comparison.pairs:
        return Table(title, "Fewer than two methods are compared.", (), (), Sheet(_HEADER, ()), first="Methods")
    return Table(
        title=title,
        caption=_caption(comparison, titles, score),
        columns=_columns(comparison),
        rows=tuple(
            Row.single(f"{titles[pair.a]} − {titles[pair.b]}", _cells(comparison, pair, titles))
            for pair in comparison.pairs
        ),
        sheet=Sheet(_HEADER, tuple(_values(comparison, pair, score) for pair in comparison.pairs)),
        first="Methods",
        notes=tuple(mixed_origins(measured)),
        remarks=(*_groups(comparison, titles), *_constant(measured, comparison)),
    )


def _direction_words(pair: ComparedPair, titles: Mapping[str, str]) -> str:
    """Write which method of a pair is better: `A better`, `cannot tell`, or why it was not tested."""
    return f"{titles[pair.better]} better" if pair.better else pair.untested or pair.direction


def settings_words(pair: ComparedPair, titles: Mapping[str, str]) -> str:
    """Write which of two settings is better: `A's setting better`, `cannot tell`, or why it was not tested."""
    return f"{possessive(titles[pair.better])} setting better" if pair.better else pair.untested or pair.direction


def size_words(pair: ComparedPair, margin: float) -> str:
    """Write the size of a difference against the margin: `beyond 0.5`, `within 0.5`, `cannot tell`, or nothing."""
    if pair.untested:
        return ""
    return pair.size if pair.size == "cannot tell" else f"{pair.size} {100 * margin:g}"


def _groups(comparison: ComparisonResult, titles: Mapping[str, str]) -> Iterator[str]:
    if comparison.groups and len(comparison.methods) > 2 and not comparison.interim:
        groups = joined_groups([[titles[key] for key in group] for group in comparison.groups])
        yield f"Groups of methods of which none is shown to be better than another: {groups}."


def _constant(measured: MeasuredExperiment, comparison: ComparisonResult) -> Iterator[str]:
    """Name the methods whose only run was tested in the place of many."""
    titles = [measured.summary.methods[key] for key in comparison.methods if key in measured.summary.constant]
    if titles and comparison.tested:
        has = "has one run" if len(titles) == 1 else "have one run each"
        yield (
            f"{listed(titles)} {has}, because every further run would be equal. The tests take such a value without an "
            "error of its own."
        )


def _caption(comparison: ComparisonResult, titles: Mapping[str, str], score: PrimaryScore) -> str:
    name, margin = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}", f"{100 * comparison.margin:g}"
    sentences = [
        f"Differences of {name}, the primary score, in percentage points, of {asked_pairs(comparison, titles)}.",
        _unit_words(comparison),
    ]
    if comparison.tested:
        sentences.append(
            f"Verdict: which method is better. Size: whether the difference is beyond {margin} points or within. The "
            "probability of any wrong claim in these two columns is at most "
            f"{100 * comparison.alpha:g} % in simulations, with the exceptions that the suite's documentation lists "
            "(How methods are compared). p is that of the verdict, adjusted for all these pairs. How sure it is that "
            f"the first method is better by more than {margin} points / within {margin} points of the second / worse "
            "by more: these shares and the 95 % intervals are not adjusted and hold for one pair alone. Could have "
            "seen: the smallest true difference that would be called better with a probability of 80 %."
        )
    if comparison.settings is not None:
        sentences.append(
            "Settings found: which of the two settings is better by their runs, tested as a family of their own. This "
            "column says nothing about the methods, whose next search would find other settings."
        )
    if comparison.interim:
        sentences.append(
            "Interim: verdicts can change when all searches and runs are there, and a look before makes a wrong claim "
            "more likely than that."
        )
    return " ".join(sentences)


def _unit_words(comparison: ComparisonResult) -> str:
    """Say what is compared, and what is left out."""
    if comparison.unit == "search":
        return (
            "Compared are the means of complete searches, so the variation of the search is in the verdicts; that of "
            "the test classes is not."
        )
    if comparison.unit == "run":
        return "Compared are runs at given settings: the verdicts are about these settings on these test classes."
    if comparison.assumed is None:
        return (
            "Each method was searched once, and how far two searches of this size differ is not known, so there are "
            "no verdicts about methods."
        )
    assumed = comparison.assumed
    return (
        "Each method was searched once. The standard deviation between searches is assumed to be twice the "
        f"{100 * assumed.deviation:.2f} points of {assumed.record} ({assumed.setting})."
    )


def _columns(comparison: ComparisonResult) -> tuple[Column, ...]:
    counts = Column("searches" if comparison.unit == "search" else "runs")
    tested = (
        Column("size", numeric=False),
        Column("how sure"),
        Column("p (adjusted)"),
        counts,
        Column("could have seen"),
    )
    columns = (Column("difference"), Column("verdict", numeric=False), *(tested if comparison.tested else [counts]))
    return columns if comparison.settings is None else (*columns, Column("settings found", numeric=False))


def _cells(comparison: ComparisonResult, pair: ComparedPair, titles: Mapping[str, str]) -> list[Cell]:
    count = Cell(pair.units_a, written="" if pair.units_a == pair.units_b else f"{pair.units_a}, {pair.units_b}")
    cells = [
        Cell(pair.difference, pair.half_width, form=POINTS, kind="measured"),
        Cell(_direction_words(pair, titles)),
    ]
    if comparison.tested:
        cells += [
            Cell(size_words(pair, comparison.margin)),
            Cell(pair.share_better, written=shares(pair)),
            Cell(pair.p_better, form=_P_VALUE),
            count,
            Cell(pair.smallest, form=_DISTANCE),
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
    numbers = (getattr(pair, name) for name in _NUMBERS)
    named = (pair.a, pair.b, score.metric, score.embeddings, comparison.unit)
    return (*named, *numbers, settings.direction if settings else None)
