"""Is the difference real? Every pair of an experiment's methods, tested over matched runs."""

from collections.abc import Iterable

from reports.tables.result_table import METRICS
from reports.tables.table import Cell, Column, Drawing, Sheet, Value, plain_rows
from results.experiment_results import MeasuredExperiment
from results.statistics.comparisons import Comparison, compare_all
from results.statistics.effects import Effect
from results.statistics.run_values import Variant, run_values

_HEADER = (
    *("a", "b", "metric", "variant", "test", "difference", "low", "high", "n_a", "n_b", "left_out", "t", "degrees"),
    *("p", "p_holm", "effect_name", "effect", "effect_low", "effect_high", "real"),
)


def differences(
    measured: MeasuredExperiment, metric: str = "map_at_r", variant: Variant = "concatenated", alpha: float = 0.05
) -> Drawing:
    """Differences in the order of the experiment's methods, p values adjusted for all of them by Holm's method.

    metric: one of MLRC's three, as differences in percentage points. alpha: of the answers.
    """
    titles = measured.summary.methods
    values = run_values(measured.records, metric, variant)
    pairs = compare_all({key: values[key] for key in titles if key in values})
    names = ("difference", "p (Holm)", "effect", "n", "test", "real?")
    columns = [Column(name, numeric=name not in ("test", "real?")) for name in names]
    heads = [f"{titles[pair.a]} − {titles[pair.b]}" for pair in pairs]
    return Drawing(
        title=f"{measured.summary.title}: is the difference real?",
        caption=_caption(pairs, metric, variant, alpha),
        columns=tuple(columns),
        rows=plain_rows(heads, [_cells(pair, alpha) for pair in pairs]),
        sheet=Sheet(_HEADER, tuple(_values(pair, metric, variant, alpha) for pair in pairs)),
        first="Methods",
    )


def answer(pair: Comparison, alpha: float = 0.05) -> str:
    """`yes`, `not shown`, or `too few runs`: that no difference was found is no proof that there is none."""
    if pair.p_holm is None:
        return "too few runs"
    return "yes" if pair.significant(alpha) else "not shown"


def _caption(pairs: Iterable[Comparison], metric: str, variant: str, alpha: float) -> str:
    tests = {pair.test for pair in pairs}
    said = [
        f"Differences of {variant} {METRICS.get(metric, metric)} in percentage points with 95 % intervals, these not "
        f"adjusted; p values adjusted for all pairs (Holm); real where p < {alpha:g}."
    ]
    if "paired t" in tests:
        said.append("Paired t: runs of equal seed and number are matched; effect d_z.")
    if "Welch t" in tests:
        said.append("Welch t: fewer than two runs are matched; effect Hedges' g.")
    return " ".join(said) if tests else "Fewer than two methods have runs."


def _cells(pair: Comparison, alpha: float) -> list[Cell]:
    half = "" if pair.half_width is None else f" ± {100 * pair.half_width:.2f}"
    difference = Cell(f"{100 * pair.difference:+.2f}{half}", kind="measured")
    counts = str(pair.n_a) if pair.n_a == pair.n_b else f"{pair.n_a}, {pair.n_b}"
    return [
        difference,
        Cell(_p_value(pair.p_holm)),
        Cell(_effect(pair.effect)),
        Cell(counts),
        Cell(pair.test),
        Cell(answer(pair, alpha)),
    ]


def _p_value(p: float | None) -> str:
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _effect(effect: Effect | None) -> str:
    if effect is None:
        return ""
    return f"{effect.value:+.2f} [{effect.low:+.2f}, {effect.high:+.2f}]"


def _values(pair: Comparison, metric: str, variant: str, alpha: float) -> tuple[Value, ...]:
    effect = pair.effect
    sizes = (None,) * 4 if effect is None else (effect.name, effect.value, effect.low, effect.high)
    counts = (pair.n_a, pair.n_b, pair.left_out)
    tested = (pair.t, pair.degrees, pair.p, pair.p_holm)
    interval = (pair.difference, pair.low, pair.high)
    return (pair.a, pair.b, metric, variant, pair.test, *interval, *counts, *tested, *sizes, answer(pair, alpha))
