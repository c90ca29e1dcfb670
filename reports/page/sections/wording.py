"""Texts for numbers, lists and tests in sentences."""

from collections.abc import Sequence

from reports.tables.cell_text import joined_with_and
from results.statistics.intervals import Interval
from results.statistics.method_comparison import ComparedPair


def percent(interval: Interval) -> str:
    """Format a mean in percent, with the half width of its interval if there is one."""
    mean = f"{100 * interval.mean:.2f}"
    return f"{mean} %" if interval.half_width is None else f"{mean} ± {100 * interval.half_width:.2f} %"


def capitalized(text: str) -> str:
    """Begin a text with a capital letter, and keep the others as they are."""
    return text[:1].upper() + text[1:]


def points(difference: float) -> str:
    """Format a difference in percentage points."""
    return f"{100 * difference:.2f} points"


def p_value(p: float) -> str:
    """Format a p value. A very small p is shown as p < 0.001 and not as 0.000."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def runs(count: int) -> str:
    """Format a number of runs."""
    return "1 run" if count == 1 else f"{count} runs"


def listed(names: Sequence[str]) -> str:
    """Join names as in `a, b and c`."""
    return joined_with_and(names)


def test_of(pair: ComparedPair) -> str:
    """Name the test of a pair."""
    if pair.test == "paired t":
        return f"paired t-test over {pair.n_a} matched runs"
    name = "moderated t-test" if pair.test == "moderated t" else "Welch's t-test"
    return f"{name} over {pair.n_a} and {pair.n_b} runs"
