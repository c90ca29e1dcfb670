"""Texts for numbers, lists and tests in sentences."""

from collections.abc import Sequence

from results.statistics.comparisons import Comparison
from results.statistics.intervals import Interval


def percent(interval: Interval) -> str:
    """Format a mean in percent, with the half width of its interval if there is pair."""
    mean = f"{100 * interval.mean:.2f}"
    return f"{mean} %" if interval.half_width is None else f"{mean} ± {100 * interval.half_width:.2f} %"


def points(difference: float) -> str:
    """Format a difference in percentage points."""
    return f"{100 * difference:.2f} points"


def p_value(p: float) -> str:
    """Format a p value. A very small p is shown as p < 0.001 and not as 0.000."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def runs(count: int) -> str:
    """Format a number of runs."""
    return "1 run" if count == 1 else f"{count} runs"


def corrected(tests: int, what: str) -> str:
    """Name the number of tests that p values are adjusted for; empty for a single test."""
    return "" if tests < 2 else f", corrected for {tests} {what} (Holm)"


def listed(names: Sequence[str]) -> str:
    """Join names as in `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def test_of(pair: Comparison) -> str:
    """Name the test of a comparison."""
    if pair.test == "paired t":
        return f"paired t-test over {pair.n_a} matched runs"
    return f"Welch's t-test over {pair.n_a} and {pair.n_b} runs" if pair.test == "Welch t" else "not tested"
