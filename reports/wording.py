"""Texts for numbers, lists and searches in sentences."""

from collections.abc import Mapping, Sequence

from results.statistics.comparison_result import ComparedPair, ComparisonResult, MethodValues
from results.statistics.cut_off import RangeEnd
from results.statistics.intervals import Interval
from results.statistics.search_deviation import SearchDeviation


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


def counted(count: int, thing: str) -> str:
    """Format a number of things."""
    return f"{count} {thing if count == 1 else plural(thing)}"


def plural(thing: str) -> str:
    """Write the plural of `run`, `search` and the like."""
    return f"{thing}es" if thing.endswith("ch") else f"{thing}s"


def possessive(title: str) -> str:
    """Write the possessive of a title: `A's`, or `Divisors'`."""
    return f"{title}'" if title.endswith("s") else f"{title}'s"


def runs(count: int) -> str:
    """Format a number of runs."""
    return counted(count, "run")


def origin_of_mean(head: str, values: Sequence[float], interval: Interval, unit: str = "run") -> str:
    """Write three lines on a mean: what it is, its single values by run or by search, and the ends of its interval."""
    single = f"{plural(unit)}: {', '.join(f'{100 * value:.2f}' for value in values)}"
    if interval.low is None or interval.high is None:
        return f"{head}\n{single}\n{counted(len(values), unit)}: no interval"
    ends = f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"
    return f"{head}\n{single}\n95 % interval: {ends}, over {counted(interval.n, unit)}"


def joined(names: Sequence[str]) -> str:
    """Join names with commas, or with semicolons if a name has a comma."""
    return _separator(names).join(names)


def listed(names: Sequence[str]) -> str:
    """Join at least one name as in `a, b and c`, or as in `a, 1; b; and c` if a name has a comma."""
    *first, last = names
    separator = _separator(names)
    and_word = "; and" if separator == "; " else " and"
    return f"{separator.join(first)}{and_word} {last}" if first else last


def joined_groups(groups: Sequence[Sequence[str]]) -> str:
    """Join groups of names as in `a, b; c, d`, or as in `(a, 1; b); (c; d)` if a name has a comma."""
    if any("," in name for group in groups for name in group):
        return "; ".join(f"({'; '.join(group)})" for group in groups)
    return "; ".join(", ".join(group) for group in groups)


def _separator(names: Sequence[str]) -> str:
    return "; " if any("," in name for name in names) else ", "


def failed_searches(title: str, values: MethodValues) -> str:
    """Say which searches of a method failed: `one of A's 3 searches reached 8.1, less than half of its best, 29.3`.

    The units of the values are means of searches, of which at least one failed.
    """
    failed, searches, best = values.failed, len(values.units), max(values.units)
    reached = listed([f"{100 * value:.1f}" for value in failed])
    number = "one" if len(failed) == 1 else f"{len(failed)}"
    own = f"{possessive(title)} {searches} searches"
    return f"{number} of {own} reached {reached}, less than half of its best, {100 * best:.1f}"


def searches_differ(assumed: SearchDeviation) -> str:
    """Say how far searches differ: `searches of this size have differed by about 0.4 points (RECORD: SETTING)`.

    It is the root mean square of the difference of two searches of one method.
    """
    typical = 100 * 2**0.5 * assumed.deviation
    return f"searches of this size have differed by about {typical:.1f} points ({assumed.record}: {assumed.setting})"


def end_of_range(end: RangeEnd) -> str:
    """Write a value at an end of its range: `loss.omega 1 (highest)`, or `... (highest in 2 of 3 searches)`."""
    count = f" in {end.found} of {end.searches} searches" if end.searches > 1 else ""
    return f"{end.target} {end.value:g} ({end.end}{count})"


def asked_pairs(comparison: ComparisonResult, titles: Mapping[str, str]) -> str:
    """Say which pairs are compared: `all pairs`, or `each method with A, which has the highest mean`."""
    if comparison.reference is None:
        return "all pairs"
    highest = ", which has the highest mean" if comparison.compare == "best" else ""
    return f"each method with {titles[comparison.reference]}{highest}"


def shares(pair: ComparedPair) -> str:
    """Write how sure a comparison is of better by more than the margin, within it, worse by more: `94 / 6 / < 1 %`."""
    given = (pair.share_better, pair.share_within, pair.share_worse)
    return " / ".join(_share(share) for share in given if share is not None) + " %" if pair.p is not None else ""


def _share(share: float) -> str:
    return "< 1" if share < 0.01 else "> 99" if share > 0.99 else f"{100 * share:.0f}"
