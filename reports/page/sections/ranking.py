"""The ranking of the methods: the primary score best first, intervals drawn in the rows, groups as letters."""

from collections.abc import Iterator, Sequence
from string import ascii_lowercase

from reports.page.content import DrawnInterval, RankedRow, Ranking
from reports.page.material import Material
from reports.wording import origin_of_mean
from results.statistics.intervals import Interval, student_t_interval

MOST_GROUPS = 8
"""Number of groups that are shown as letters. Later ones are left out, and a note says so."""


def ranking(material: Material) -> Ranking | None:
    """Rank the methods by the primary score; None without runs."""
    if not material.records:
        return None
    comparison, score = material.comparison, material.scores[0]
    values = {key: list(by_run.values()) for key, by_run in material.values(score).items()}
    intervals = {key: student_t_interval(own) for key, own in values.items()}
    axis = _axis(list(intervals.values()), [value for own in values.values() for value in own])
    groups = () if comparison is None else comparison.groups
    leading = () if comparison is None else comparison.leading
    left_out = material.measured.summary.left_out
    rows = [
        RankedRow(
            title=material.titles[key],
            mean=f"{100 * intervals[key].mean:.2f}",
            spread="" if intervals[key].half_width is None else f"± {100 * (intervals[key].half_width or 0):.2f}",
            runs=len(material.records[key]),
            drawn=_drawn(intervals[key], values[key], axis),
            letters=_letters(key, groups),
            sign=left_out[key].sign if key in left_out else "",
            leads=key in leading,
            detail=origin_of_mean(material.titles[key], values[key], intervals[key]),
        )
        for key in material.best_first
    ]
    rows += [RankedRow(title) for key, title in material.titles.items() if key not in material.records]
    ends = (f"{100 * axis[0]:.1f}", f"{100 * axis[1]:.1f}")
    return Ranking(score.name, tuple(rows), ends, tuple(_notes(material, groups)))


def _axis(intervals: Sequence[Interval], values: Sequence[float]) -> tuple[float, float]:
    """The ends of the axis. It holds all values, and intervals up to one range of the values beyond them."""
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
    if groups:
        yield "Same letter: none of these methods is shown to be better than another of them."
    if len(groups) > MOST_GROUPS:
        yield f"The first {MOST_GROUPS} of {len(groups)} groups are shown. The pairs below are complete."
    elif groups:
        yield "No letter: shown to differ from every other compared method."
    for key, reason in material.measured.summary.left_out.items():
        if key in material.records:
            yield f"{reason.sign} {material.titles[key]}: {reason.note}"
