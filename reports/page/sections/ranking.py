"""The ranking of the methods: the primary score best first, intervals drawn in the rows, groups as letters."""

import math
from collections.abc import Iterator, Sequence
from string import ascii_lowercase

from reports.page.answer_content import DrawnInterval, RankedRow, Ranking
from reports.page.material import Material
from reports.page.sections.headline import missing_units
from reports.wording import origin_of_mean
from results.statistics.comparison_result import ComparisonResult
from results.statistics.intervals import Interval
from results.statistics.primary_comparison import unit_of

MOST_GROUPS = 8
"""Number of groups that are shown as letters. Later ones are left out, and a note says so."""


def ranking(material: Material) -> Ranking | None:
    """Rank the methods by the primary score; None without runs.

    The points are the single searches where they are repeated. Letters and leading methods are those of a comparison
    that makes claims, and not of one with missing searches or runs.
    """
    if not material.records:
        return None
    score, left_out = material.scores[0], material.measured.summary.left_out
    intervals = material.intervals(score)
    points = {key: own.units for key, own in material.values(score).items()}
    axis = _axis(list(intervals.values()), [value for own in points.values() for value in own])
    groups, leading = _groups(material.comparison), _leading(material.comparison)
    missing = missing_units(material)
    rows = [
        RankedRow(
            title=material.titles[key],
            mean=f"{100 * intervals[key].mean:.2f}",
            spread="" if intervals[key].half_width is None else f"± {100 * (intervals[key].half_width or 0):.2f}",
            count=f"{missing[key].complete} of {missing[key].planned}" if key in missing else str(len(points[key])),
            drawn=_drawn(intervals[key], points[key], axis) if math.isfinite(intervals[key].mean) else None,
            letters=_letters(key, groups),
            sign=left_out[key].sign if key in left_out else "",
            leads=key in leading,
            detail=origin_of_mean(material.titles[key], points[key], intervals[key], material.unit),
        )
        for key in material.best_first
    ]
    rows += [RankedRow(title) for key, title in material.titles.items() if key not in material.records]
    ends = (f"{100 * axis[0]:.1f}", f"{100 * axis[1]:.1f}")
    unit = "searches" if material.unit == "search" else "runs"
    return Ranking(score.name, unit, tuple(rows), ends, tuple(_notes(material, groups)))


def _groups(comparison: ComparisonResult | None) -> Sequence[Sequence[str]]:
    return () if comparison is None or comparison.interim else comparison.groups


def _leading(comparison: ComparisonResult | None) -> set[str]:
    """The tested methods that none is shown to be better than, if any claim is made."""
    if comparison is None or comparison.interim or comparison.compare not in ("all", "best"):
        return set()
    worse = {pair.worse for pair in comparison.pairs if pair.worse}
    tested = {key for pair in comparison.pairs if pair.untested is None for key in (pair.a, pair.b)}
    return tested - worse if worse else set()


def _axis(intervals: Sequence[Interval], values: Sequence[float]) -> tuple[float, float]:
    """The ends of the axis. It holds all values, and intervals up to one range of the values beyond them."""
    intervals = [interval for interval in intervals if math.isfinite(interval.mean)]
    values = [value for value in (*values, *(interval.mean for interval in intervals)) if math.isfinite(value)]
    if not values:
        return (0.0, 1.0)
    low, high = min(values), max(values)
    room = (high - low) or 0.01
    lows = [interval.mean - (interval.half_width or 0) for interval in intervals]
    highs = [interval.mean + (interval.half_width or 0) for interval in intervals]
    left, right = max(min(lows), low - room, 0.0), min(max(highs), high + room, 1.0)
    return (left, right) if right > left else (left - room, right + room)


def _drawn(interval: Interval, values: Sequence[float], axis: tuple[float, float]) -> DrawnInterval:
    def place(value: float) -> float:
        return round(min(max(100 * (value - axis[0]) / (axis[1] - axis[0]), 0.0), 100.0), 2)

    low, high = (interval.mean - (interval.half_width or 0), interval.mean + (interval.half_width or 0))
    points = tuple(place(value) for value in values)
    return DrawnInterval(place(interval.mean), place(low), place(high), points, low < axis[0], high > axis[1])


def _letters(key: str, groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(
        letter if key in group else "" for letter, group in zip(ascii_lowercase[:MOST_GROUPS], groups, strict=False)
    )


def _notes(material: Material, groups: Sequence[Sequence[str]]) -> Iterator[str]:
    if material.unit == "search":
        yield "A point is the mean of one search's runs. The intervals are over searches."
    elif unit_of(material.measured.summary.experiment) == "single search":
        yield "The intervals are over runs of the settings found. Another search is not in them."
    if groups:
        yield "Same letter: none of these methods is shown to be better than another of them."
    if len(groups) > MOST_GROUPS:
        yield f"The first {MOST_GROUPS} of {len(groups)} groups are shown. The pairs below are complete."
    elif groups and not set(material.best_first) <= {key for group in groups for key in group}:
        yield "No letter: shown to differ from every other compared method."
    for key, reason in material.measured.summary.left_out.items():
        if key in material.records:
            yield f"{reason.sign} {material.titles[key]}: {reason.note}"
