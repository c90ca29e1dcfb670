"""The ranking and the matrix of a page: methods with their intervals, and what each pair shows, drawn as signs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.page.material import Material
from reports.tables.differences import open_words, size_words
from results.answer.answers import Answer
from results.answer.intervals import Interval
from results.answer.values import MOST_RUNS, Pair
from results.numbers import ENDLESS, Ends
from results.wording import counted, place_words


@dataclass(frozen=True)
class PairMark:
    """What a pair shows of its first method, drawn as a sign.

    Attributes:
        sign: ▲ if it is better, ▼ if it is worse, filled if by more than the margin, = within the margin, · if it
            cannot be told, – without a test; where nothing says how many runs are behind the means, how many show it.
        kind: `better`, `worse`, `equal`, or `open`, by which a style sheet colours it.
        words: The methods, their difference with its interval, and the verdict, in a few lines.
        short: The difference in points.
    """

    sign: str
    kind: str
    words: str
    short: str


def pair_mark(found: Answer, pair: Pair) -> PairMark:
    """Say what a pair shows of its method a."""
    kind, sign, verdict = _verdict_mark(found, pair)
    if pair.size != "cannot tell":
        verdict += f", {size_words(pair, found.question)}{found.scaling.gap_unit}"
    difference = f"{found.difference_words(pair, more=True, signed=True)}{found.scaling.gap_unit}"
    words = f"{found.of_two(pair)}\n{difference}\n{verdict}"
    return PairMark(sign, kind, words, found.scaling.gap(pair.difference, more=True, signed=True))


def _verdict_mark(found: Answer, pair: Pair) -> tuple[str, str, str]:
    """The kind of a pair's mark, its sign, and its verdict in words."""
    if pair.better:
        beyond, title = pair.size == "beyond", found.titles[pair.a]
        if pair.better == pair.a:
            return "better", "▲" if beyond else "△", f"{title} is better"
        return "worse", "▼" if beyond else "▽", f"{title} is worse"
    if pair.size == "within":
        return "equal", "=", "equal"
    if pair.fewest:
        return "open", f"n ≥ {pair.fewest}:", open_words(found, pair)
    sign = "◦" if pair.ahead else "–" if pair.untested else "·"
    return "open", sign, open_words(found, pair)


def matrix(found: Answer) -> list[tuple[str, list[PairMark | None]]]:
    """Return a row for each method: its title and a mark against each one, None for itself.

    Without all pairs there are no rows.
    """
    if found.question.compare != "all" or not found.pairs:
        return []
    marks = {(pair.a, pair.b): pair_mark(found, pair) for one in found.pairs for pair in (one, one.turned())}
    return [(found.titles[key], [marks.get((key, other)) for other in found.order]) for key in found.order]


def reading_of_marks(found: Answer) -> str:
    """Say what the signs mean."""
    if not found.sample.counted:
        signs = f"n ≥: so many runs behind each mean, or more, would show the difference; – not even {MOST_RUNS} would."
        return f"{signs} Point at a sign or tap it for the words."
    margin = found.question.margin_words
    sizes = f"filled: by more than {margin}; = equal within {margin}; " if found.question.bound is not None else ""
    better, worse = "△▽" if found.question.bound is None else "▲▼"
    untested = "; – not tested" if any(pair.untested for pair in found.pairs) else ""
    held = "; ◦ one is better only as far as it was trained or searched" if found.limited else ""
    return ("Interim. " if found.interim else "") + (
        f"{better} the method of the row is better, {worse} worse; {sizes}· cannot tell{held}{untested}. Each sign has "
        "its difference with the 95 % interval: point at it or tap it."
    )


@dataclass(frozen=True)
class DrawnInterval:
    """An interval on the common axis of a ranking, whose ends can lie beyond the axis (`cut_low`, `cut_high`).

    Places are percentages of the axis from its left end. `low` equals `high` without an interval.
    """

    mean: float
    low: float
    high: float
    points: tuple[float, ...] = ()
    cut_low: bool = False
    cut_high: bool = False


@dataclass(frozen=True)
class RankedRow:
    """A method in the ranking. Without runs only its title is given.

    Attributes:
        mean: Mean of the primary score in percent, as text; likewise `spread` and `count` of searches or runs.
        rank: The places that it can have, such as `1 to 3`.
        mark: What it shows against the method that each other one is compared with.
        asked: Whether it is this method.
        sign: Sign that refers to a note.
        leads: Whether no other method is shown to be better.
        detail: The single values and the ends of the interval.
    """

    title: str
    mean: str = ""
    spread: str = ""
    count: str = "0"
    drawn: DrawnInterval | None = None
    rank: str = ""
    mark: PairMark | None = None
    asked: bool = False
    sign: str = ""
    leads: bool = False
    detail: str = ""


@dataclass(frozen=True)
class Ranking:
    """The methods in the order of the answer.

    Attributes:
        ends: The ends of the axis in percent, as text.
        is_cut: Whether an interval goes on beyond the axis.
        has_ranks: Whether rows have ranks.
        against: Title of the method that each other one is compared with; empty if all pairs are.
    """

    rows: tuple[RankedRow, ...]
    ends: tuple[str, str]
    is_cut: bool
    has_ranks: bool
    against: str = ""


def ranking(material: Material) -> Ranking | None:
    """Put the methods in the order of the answer; None without runs.

    The points are the single searches where they are repeated. Ranks and leading methods are those of a comparison
    that makes claims, and not of one with missing searches or runs.
    """
    found = material.answer
    intervals = found.intervals
    if not intervals:
        return None
    values = [value for key in intervals for value in found.values[key].units]
    axis = _axis(list(intervals.values()), values, found.scaling.ends)
    ranks, missing, asked = found.final_ranks, found.missing, found.reference
    form = found.scaling.score_format(more=True)
    rows = [
        RankedRow(
            title=material.titles[key],
            mean=form.text(intervals[key].mean),
            spread="" if (half := intervals[key].half_width) is None else form.interval(intervals[key].mean, half),
            count=missing[key].rpartition(" ")[0] if key in missing else _count(material, key),
            drawn=_drawn(intervals[key], found.values[key].single, axis)
            if math.isfinite(intervals[key].mean)
            else None,
            rank=place_words(ranks[key]) if key in ranks else "",
            mark=pair_mark(found, pair) if asked and (pair := found.pair(key, asked)) else None,
            asked=key == asked,
            sign=reason.sign if (reason := found.question.methods[key].left_out) else "",
            leads=key in found.leading,
            detail=_detail(found, key),
        )
        for key in material.order
    ]
    rows += [RankedRow(title) for key, title in material.titles.items() if key not in intervals]
    against = found.titles[asked] if asked and found.pairs else ""
    of_axis = found.scaling.score(axis[0]), found.scaling.score(axis[1])
    is_cut = any(row.drawn.cut_low or row.drawn.cut_high for row in rows if row.drawn)
    return Ranking(tuple(rows), of_axis, is_cut, bool(ranks), against)


def _count(material: Material, key: str) -> str:
    """The number of searches or runs; runs are named where the others have searches."""
    found = material.answer
    own = found.values[key]
    if not found.sample.counted:
        return "not known"
    count = f"{own.n} of {own.count}" if own.failed else own.count
    if not found.sample.of_searches or found.question.methods[key].by_search:
        return str(count)
    return counted(own.runs, "run")


def _axis(intervals: Sequence[Interval], values: Sequence[float], ends: Ends) -> tuple[float, float]:
    """The ends of the axis. It holds all values, and intervals up to one range of the values beyond them."""
    drawn = [_ends(interval) for interval in intervals if math.isfinite(interval.mean)]
    values = [value for value in (*values, *(interval.mean for interval in intervals)) if math.isfinite(value)]
    if not values:
        return (0.0, 1.0)
    low, high = min(values), max(values)
    room = (high - low) or 0.01 * (abs(high) or 1.0 if ends == ENDLESS else ends[1] - ends[0])
    left = max(min(low, *(first for first, _ in drawn)), low - room)
    right = min(max(high, *(last for _, last in drawn)), high + room)
    if low >= ends[0] and high <= ends[1]:
        left, right = max(left, ends[0]), min(right, ends[1])
    return (left, right) if right > left else (left - room, right + room)


def _ends(interval: Interval) -> tuple[float, float]:
    half = interval.half_width or 0.0
    return interval.mean - half, interval.mean + half


def _drawn(interval: Interval, values: Sequence[float], axis: tuple[float, float]) -> DrawnInterval:
    def place(value: float) -> float:
        return round(min(max(100 * (value - axis[0]) / (axis[1] - axis[0]), 0.0), 100.0), 2)

    low, high = _ends(interval)
    points = tuple(map(place, values))
    return DrawnInterval(place(interval.mean), place(low), place(high), points, low < axis[0], high > axis[1])


def _detail(found: Answer, key: str) -> str:
    """Three lines on a mean: the method, its single values by run or by search, and the ends of its interval."""
    own, interval, form = found.values[key], found.intervals[key], found.scaling.score_format(more=True)

    def written(values: Sequence[float]) -> str:
        return ", ".join(map(form.text, values))

    single = "a mean of runs" if own.summary else f"{found.sample.values}: {written(own.units)}"
    if own.failed:
        single += f"; set aside: {written(own.failed)}"
    over = counted(own.n, found.sample.value) if found.sample.counted else found.sample.means
    words = "no interval"
    if shown := interval.within(found.scaling.ends):
        words = f"95 % interval: {form.range(shown)}"
        words = "the 95 % interval holds all scores" if shown == found.scaling.ends else words
    return f"{found.titles[key]}\n{single}\n{words}, over {over}"
