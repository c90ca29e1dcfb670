"""Table of the differences between methods: every pair, with the verdict of the experiment's one comparison."""

from collections.abc import Iterator, Mapping

from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value
from reports.wording import joined_groups, listed
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.effects import Effect
from results.statistics.method_comparison import FEWEST_RUNS_OF_EFFECT, ComparedPair, ComparisonResult
from results.statistics.primary_comparison import primary_comparison, primary_score
from results.store.experiment_results import MeasuredExperiment

_HEADER = (
    *("a", "b", "metric", "variant", "test", "difference", "low", "high", "n_a", "n_b", "left_out", "t", "degrees"),
    *("p", "p_better", "p_equal", "smallest_detectable", "effect_name", "effect", "effect_low", "effect_high"),
    "verdict",
)
_DISTANCE = NumberFormat(digits=2, scale=100)
_P_VALUE = NumberFormat(digits=3, smallest=0.001)
_EFFECT = NumberFormat(digits=2, signed=True)


def differences(measured: MeasuredExperiment) -> Table:
    """Build the table that compares every pair of methods on the primary score, in the order of the experiment."""
    titles, score, comparison = measured.summary.methods, primary_score(measured), primary_comparison(measured)
    pairs = () if comparison is None else comparison.pairs
    names = ("difference", "p (adjusted)", "effect", "n", "could have seen", "verdict")
    return Table(
        title=f"{measured.summary.title}: is the difference real?",
        caption=_caption(comparison, score, measured.repeats_searches),
        columns=tuple(Column(name, numeric=name != "verdict") for name in names),
        rows=tuple(
            Row.single(f"{titles[pair.a]} − {titles[pair.b]}", _cells(pair, titles, _margin(comparison)))
            for pair in pairs
        ),
        sheet=Sheet(_HEADER, tuple(_values(pair, score) for pair in pairs)),
        first="Methods",
        remarks=() if comparison is None else (*_groups(comparison, titles), *_constant(measured, comparison)),
    )


def verdict_text(pair: ComparedPair, titles: Mapping[str, str], margin: float) -> str:
    """Write the verdict of a pair in a few words.

    Returns:
        `A better`, `equal within 0.5`, `cannot tell` or `too few runs`.
    """
    if pair.better:
        return f"{titles[pair.better]} better"
    return f"equal within {100 * margin:g}" if pair.verdict == "equal" else pair.verdict


def _groups(comparison: ComparisonResult, titles: Mapping[str, str]) -> Iterator[str]:
    if comparison.groups and len(comparison.methods) > 2:
        groups = joined_groups([[titles[key] for key in group] for group in comparison.groups])
        yield f"Groups of methods of which none is shown to be better than another: {groups}."


def _constant(measured: MeasuredExperiment, comparison: ComparisonResult) -> Iterator[str]:
    """Name the methods whose only run was tested in the place of many."""
    titles = [measured.summary.methods[key] for key in comparison.methods if key in measured.summary.constant]
    if titles and comparison.tested:
        has = "has one run" if len(titles) == 1 else "have one run each"
        yield (
            f"{listed(titles)} {has}, because every further run would be equal. The tests take this value for all runs."
        )


def _margin(comparison: ComparisonResult | None) -> float:
    return 0.0 if comparison is None else comparison.margin


def _caption(comparison: ComparisonResult | None, score: PrimaryScore, repeated: bool) -> str:
    if comparison is None or not comparison.pairs:
        return "Fewer than two methods are compared."
    tests = {"moderated t": "moderated t-tests", "paired t": "paired t-tests", "Welch t": "Welch's t-tests"}
    paired, fewest = comparison.test == "paired t", FEWEST_RUNS_OF_EFFECT[comparison.test]
    plural = "" if comparison.tested == 1 else "s"
    units, tested = "runs", "how the runs vary, not the search, the test classes or the dataset"
    if repeated:
        units, tested = "searches", "how the searches vary with their runs, not the test classes or the dataset"
    size = f"Cohen's d_z of the matched {units}" if paired else "Hedges' g"
    n = "n: searches, each with the mean of its runs. " if repeated else ""
    return (
        f"Differences of {score.embeddings} {HEADLINE_METRICS[score.metric]}, the primary score, in percentage points. "
        f"One family of {tests[comparison.test]} over {comparison.tested} pair{plural}: the probability of any wrong "
        f"claim in this table, better or equal, is at most {100 * comparison.alpha:g} %. The p values are adjusted for "
        "that; the 95 % intervals are not, they hold for one pair alone. Equal: the means differ by less than "
        f"{100 * comparison.margin:g} points. {n}Could have seen: the smallest difference that would be called better "
        f"with a probability of 80 %. Tested is {tested}. "
        f"The effect size is {size}; none is shown for fewer than {fewest} "
        f"{'matched ' if paired else ''}{units} per method, because its variance is infinite then."
    )


def _cells(pair: ComparedPair, titles: Mapping[str, str], margin: float) -> list[Cell]:
    difference = Cell(pair.difference, pair.half_width, form=POINTS, kind="measured")
    effect = Cell() if pair.effect is None else _effect(pair.effect)
    counts = "" if pair.n_a == pair.n_b else f"{pair.n_a}, {pair.n_b}"
    adjusted = pair.p_equal if pair.verdict == "equal" else pair.p_better
    return [
        difference,
        Cell(adjusted, form=_P_VALUE),
        effect,
        Cell(pair.n_a, written=counts),
        Cell(pair.smallest, form=_DISTANCE),
        Cell(verdict_text(pair, titles, margin)),
    ]


def _effect(effect: Effect) -> Cell:
    return Cell(effect.value, interval=(effect.low, effect.high), form=_EFFECT)


def _values(pair: ComparedPair, score: PrimaryScore) -> tuple[Value, ...]:
    effect = pair.effect
    sizes = (None,) * 4 if effect is None else (effect.name, effect.value, effect.low, effect.high)
    counts = (pair.n_a, pair.n_b, pair.left_out)
    tested = (pair.t, pair.degrees, pair.p, pair.p_better, pair.p_equal, pair.smallest)
    interval = (pair.difference, pair.low, pair.high)
    named = (pair.a, pair.b, score.metric, score.embeddings, pair.test)
    return (*named, *interval, *counts, *tested, *sizes, pair.verdict)
