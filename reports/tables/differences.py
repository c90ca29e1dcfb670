"""Table of the differences between methods: every pair of methods is tested over their runs."""

from collections.abc import Iterable

from reports.tables.table import Cell, Column, NumberFormat, Row, Sheet, Table, Value
from results.experiment_results import MeasuredExperiment
from results.headline_metrics import HEADLINE_METRICS
from results.statistics.comparisons import Comparison, compare_all
from results.statistics.effects import Effect
from results.statistics.run_values import EmbeddingKind, run_values

_HEADER = (
    *("a", "b", "metric", "variant", "test", "difference", "low", "high", "n_a", "n_b", "left_out", "t", "degrees"),
    *("p", "p_holm", "effect_name", "effect", "effect_low", "effect_high", "real"),
)
_POINTS = NumberFormat(digits=2, scale=100, signed=True)
_P_VALUE = NumberFormat(digits=3, smallest=0.001)
_EFFECT = NumberFormat(digits=2, signed=True)


def differences(
    measured: MeasuredExperiment, metric: str = "map_at_r", kind: EmbeddingKind = "concatenated", alpha: float = 0.05
) -> Table:
    """Build the table that compares every pair of methods, in the order of the experiment.

    Args:
        measured: The experiment with its runs.
        metric: One of the headline metrics.
        kind: Which embeddings were tested, separated or concatenated.
        alpha: Level of significance. A difference is called real if its p value, adjusted by Holm's method for all
            pairs, is below `alpha`.

    Returns:
        Differences in percentage points with 95 % intervals. The sheet has fractions of 1.
    """
    apart = measured.summary.own_conditions
    titles = {key: title for key, title in measured.summary.methods.items() if key not in apart}
    values = run_values(measured.records, metric, kind)
    pairs = compare_all({key: values[key] for key in titles if key in values})
    names = ("difference", "p (Holm)", "effect", "n", "test", "real?")
    columns = [Column(name, numeric=name not in ("test", "real?")) for name in names]
    rows = [Row.single(f"{titles[pair.a]} − {titles[pair.b]}", _cells(pair, alpha)) for pair in pairs]
    return Table(
        title=f"{measured.summary.title}: is the difference real?",
        caption=_caption(pairs, metric, kind, alpha),
        columns=tuple(columns),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(_values(pair, metric, kind, alpha) for pair in pairs)),
        first="Methods",
    )


def answer(pair: Comparison, alpha: float = 0.05) -> str:
    """Return `yes`, `not shown` or `too few runs`. Never `no`: a test cannot show that there is no difference."""
    if pair.p_holm is None:
        return "too few runs"
    return "yes" if pair.significant(alpha) else "not shown"


def _caption(pairs: Iterable[Comparison], metric: str, kind: str, alpha: float) -> str:
    tests = {pair.test for pair in pairs}
    sentences = [
        f"Differences of {kind} {HEADLINE_METRICS.get(metric, metric)} in percentage points with 95 % intervals. "
        "The p values are adjusted for all pairs (Holm), the intervals are not. "
        f"A difference is called real if p < {alpha:g}."
    ]
    if "paired t" in tests:
        sentences.append("Paired t: runs with the same seed and number are matched; the effect size is d_z.")
    if "Welch t" in tests:
        sentences.append("Welch t: fewer than two runs are matched; the effect size is Hedges' g.")
    return " ".join(sentences) if tests else "Fewer than two methods have runs."


def _cells(pair: Comparison, alpha: float) -> list[Cell]:
    difference = Cell(pair.difference, pair.half_width, form=_POINTS, kind="measured")
    effect = Cell() if pair.effect is None else _effect(pair.effect)
    counts = "" if pair.n_a == pair.n_b else f"{pair.n_a}, {pair.n_b}"
    return [
        difference,
        Cell(pair.p_holm, form=_P_VALUE),
        effect,
        Cell(pair.n_a, written=counts),
        Cell(pair.test),
        Cell(answer(pair, alpha)),
    ]


def _effect(effect: Effect) -> Cell:
    return Cell(effect.value, interval=(effect.low, effect.high), form=_EFFECT)


def _values(pair: Comparison, metric: str, kind: str, alpha: float) -> tuple[Value, ...]:
    effect = pair.effect
    sizes = (None,) * 4 if effect is None else (effect.name, effect.value, effect.low, effect.high)
    counts = (pair.n_a, pair.n_b, pair.left_out)
    tested = (pair.t, pair.degrees, pair.p, pair.p_holm)
    interval = (pair.difference, pair.low, pair.high)
    return (pair.a, pair.b, metric, kind, pair.test, *interval, *counts, *tested, *sizes, answer(pair, alpha))
