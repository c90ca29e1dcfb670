"""How numbers and lists are said in a sentence."""

from collections.abc import Sequence

from results.statistics.comparisons import Comparison
from results.statistics.intervals import Interval


def percent(interval: Interval) -> str:
    """A mean in percent with the half width of its interval, where there is one."""
    mean = f"{100 * interval.mean:.2f}"
    return f"{mean} %" if interval.half_width is None else f"{mean} ± {100 * interval.half_width:.2f} %"


def points(difference: float) -> str:
    """A difference of percentages."""
    return f"{100 * difference:.2f} points"


def p_value(p: float) -> str:
    """p as a reader wants it: no zeros that are none."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def runs(count: int) -> str:
    """Runs, counted."""
    return "1 run" if count == 1 else f"{count} runs"


def corrected(tests: int, what: str) -> str:
    """How many tests p values were adjusted for; nothing where a test was made alone."""
    return "" if tests < 2 else f", corrected for {tests} {what} (Holm)"


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def test_of(one: Comparison) -> str:
    """How a comparison was tested."""
    if one.test == "paired t":
        return f"paired t-test over {one.n_a} matched runs"
    return f"Welch's t-test over {one.n_a} and {one.n_b} runs" if one.test == "Welch t" else "not tested"
